from pathlib import Path
from typing import Any

import pytest

from seq2seq_memattn.vocabulary import WordVocabulary, vocabulary_files, vocabulary_from_dict

WORDS = WordVocabulary(["a", "b"], "words.txt")


def write(directory: Path, vocabulary: WordVocabulary) -> None:
    (directory / vocabulary.file).write_bytes(vocabulary.content)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "kind of vocabulary: expected one of .*'subwords'.*'symbols'.*'words'.*, got None"),
        ({"kind": "runes"}, "got 'runes'"),
        ({"kind": ["symbols"]}, r"got \['symbols'\]"),
        ({"kind": "words"}, "vocabulary: file: expected a string, got None"),
        ({"kind": "subwords", "file": "f"}, "vocabulary: sha256: expected a string, got None"),
    ],
)
def test_a_wrong_dict_is_refused(spec: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        vocabulary_from_dict(spec, tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"words\.txt: no such file"):
        vocabulary_from_dict(WORDS.to_dict(), tmp_path)


def test_the_vocabulary_of_another_data_directory_is_refused(tmp_path: Path) -> None:
    write(tmp_path, WordVocabulary(["a", "c"], "words.txt"))
    with pytest.raises(ValueError, match=r"words\.txt: not the vocabulary .* expected sha256"):
        vocabulary_from_dict(WORDS.to_dict(), tmp_path)


def test_a_file_outside_of_the_directory_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, WORDS)
    (tmp_path / "inner").mkdir()
    spec = WORDS.to_dict() | {"file": "../words.txt"}
    with pytest.raises(ValueError, match=r"inner/words\.txt: no such file"):
        vocabulary_from_dict(spec, tmp_path / "inner")


@pytest.mark.parametrize("name", ["", "..", "folder/words.txt", "/words.txt"])
def test_a_file_is_named_without_directories(name: str) -> None:
    with pytest.raises(ValueError, match="file: expected a name without directories"):
        WordVocabulary(["a"], name)


def test_the_files_of_vocabularies_are_listed_once() -> None:
    other = WordVocabulary(["a"], "other.txt")
    symbols = {"kind": "symbols", "symbols": ["a"]}
    assert vocabulary_files(WORDS.to_dict(), WORDS.to_dict()) == ("words.txt",)
    assert vocabulary_files(WORDS.to_dict(), other.to_dict()) == ("words.txt", "other.txt")
    assert vocabulary_files(symbols, symbols) == ()

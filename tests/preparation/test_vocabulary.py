import re
from pathlib import Path

import pytest
import sentencepiece

from seq2seq_memattn.preparation.vocabulary import VocabularyOptions, make_vocabulary
from seq2seq_memattn.vocabulary import (
    UNKNOWN_ID,
    SubwordVocabulary,
    Vocabulary,
    vocabulary_from_dict,
)
from tests.texts import sentences, write_lines


def make(folder: Path, lines: list[str], side: str = "", **options: object) -> Vocabulary:
    sample = write_lines(folder / "sample", lines)
    given = {"kind": "subwords", "size": 400, "normalisation": "identity"} | options
    spec = make_vocabulary(
        VocabularyOptions(character_coverage=0.9999, **given),  # type: ignore[arg-type]
        sample,
        folder,
        side,
    )
    return vocabulary_from_dict(spec, folder)


def test_subwords_have_the_projects_special_ids_and_bytes(tmp_path: Path) -> None:
    vocabulary = make(tmp_path, sentences(400, 1))
    assert isinstance(vocabulary, SubwordVocabulary)
    assert (vocabulary.size, vocabulary.id_offset) == (400, 0)
    assert vocabulary.has_byte_fallback
    processor = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.content)
    special = [processor.pad_id(), processor.bos_id(), processor.eos_id(), processor.unk_id()]
    assert special == [0, 1, 2, 3]
    assert vocabulary.encode(sentences(1, 9)[0]) == processor.encode(sentences(1, 9)[0])


def test_the_same_sample_gives_the_same_model(tmp_path: Path) -> None:
    models = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        make(tmp_path / name, sentences(400, 1))
        models.append((tmp_path / name / "subwords.model").read_bytes())
    assert models[0] == models[1]


def test_identity_keeps_characters_that_another_normalisation_rewrites(tmp_path: Path) -> None:
    lines = sentences(400, 1)
    identity = make(tmp_path, lines)
    assert identity.decode(identity.encode("ﬁ ½")) == "ﬁ ½"
    nfkc = make(tmp_path, lines, "source", normalisation="nfkc")
    assert nfkc.decode(nfkc.encode("ﬁ ½")) == "fi 1⁄2"
    assert (identity.to_dict()["splits_at_spaces"], nfkc.to_dict()["splits_at_spaces"]) == (
        True,
        False,
    )


def test_words_are_listed_from_the_most_frequent_on(tmp_path: Path) -> None:
    lines = ["c b b <unk>", "a b  c d", "<unk> <unk> <unk> <unk>"]
    vocabulary = make(tmp_path, lines, kind="words", size=7)
    assert vocabulary.encode("b c a d <unk>") == [4, 5, 6, UNKNOWN_ID, UNKNOWN_ID]
    assert (tmp_path / "words.txt").read_text() == "b\nc\na\n"


def test_characters_are_listed_with_the_space(tmp_path: Path) -> None:
    vocabulary = make(tmp_path, ["aa bb a", "\u2028"], kind="characters", size=8)
    assert vocabulary.encode("a b\u2028c") == [4, 5, 6, 7, UNKNOWN_ID]


@pytest.mark.parametrize("kind", ["words", "characters", "subwords"])
def test_a_corpus_too_small_says_what_is_possible(kind: str, tmp_path: Path) -> None:
    lines = ["ab ab cd", "x"]
    with pytest.raises(ValueError, match="^vocab_size: the source side: expected at most") as error:
        make(tmp_path, lines, "source", kind=kind, size=16_000)
    found = re.search(r"expected at most (\d+).*, got 16000$", str(error.value))
    assert found
    largest = int(found[1])
    assert make(tmp_path, lines, kind=kind, size=largest).size == largest
    with pytest.raises(ValueError, match=f"the corpus: expected at most {largest}"):
        make(tmp_path, lines, kind=kind, size=largest + 1)


def test_too_few_subwords_say_how_many_are_needed(tmp_path: Path) -> None:
    lines = ["ab ab cd", "x"]
    with pytest.raises(ValueError, match="expected at least") as error:
        make(tmp_path, lines, size=100)
    found = re.search(r"expected at least (\d+),.*, got 100$", str(error.value))
    assert found
    least = int(found[1])
    assert make(tmp_path, lines, size=least).size == least
    with pytest.raises(ValueError, match=f"expected at least {least}"):
        make(tmp_path, lines, size=least - 1)


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="vocab_size"):
        make(tmp_path, ["ab"], kind="words", size=100)
    assert [path.name for path in tmp_path.iterdir()] == ["sample"]

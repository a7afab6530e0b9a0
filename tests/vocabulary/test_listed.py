from pathlib import Path

import pytest

from seq2seq_memattn.vocabulary import (
    END_ID,
    UNKNOWN_ID,
    CharacterVocabulary,
    WordVocabulary,
    vocabulary_from_dict,
)

WORDS = WordVocabulary(["the", "cat", "a\u00a0b", "x\r"], "words.txt")
CHARACTERS = CharacterVocabulary("ab ä\r\u2028", "characters.txt")


def test_words_stand_between_spaces_alone() -> None:
    assert WORDS.size == 8
    assert WORDS.encode("  the cat  a\u00a0b x\r") == [4, 5, 6, 7]
    assert WORDS.encode("the\tcat x") == [UNKNOWN_ID, UNKNOWN_ID]


def test_an_unknown_word_is_written_as_such() -> None:
    assert WORDS.decode([4, UNKNOWN_ID, 5, END_ID, 4]) == "the <unk> cat"


def test_characters_count_spaces_and_line_separators() -> None:
    assert CHARACTERS.size == 10
    assert CHARACTERS.encode(" b\u2028ä\r") == [6, 5, 9, 7, 8]
    assert CHARACTERS.encode("") == []


def test_an_unknown_character_comes_back_as_the_replacement_character() -> None:
    assert CHARACTERS.encode("aé") == [4, UNKNOWN_ID]
    assert CHARACTERS.decode(CHARACTERS.encode("a é")) == "a \ufffd"


@pytest.mark.parametrize("vocabulary", [WORDS, CHARACTERS])
def test_a_list_is_rebuilt_from_its_dict_and_its_file(
    vocabulary: WordVocabulary | CharacterVocabulary, tmp_path: Path
) -> None:
    (tmp_path / vocabulary.file).write_bytes(vocabulary.content)
    again = vocabulary_from_dict(vocabulary.to_dict(), tmp_path)
    assert again.to_dict() == vocabulary.to_dict()
    assert again.size == vocabulary.size
    ids = list(range(3, again.size))
    assert again.decode(ids) == vocabulary.decode(ids)


@pytest.mark.parametrize("tokens", [["a b"], [""], ["a\n"], ["<unk>"], ["a", "a"]])
def test_unusable_words_are_refused(tokens: list[str]) -> None:
    with pytest.raises(ValueError, match=r"^words\.txt: expected .*words"):
        WordVocabulary(tokens, "words.txt")


@pytest.mark.parametrize("tokens", [["ab"], [""], ["\n"], ["\ufffd"], ["a", "a"]])
def test_unusable_characters_are_refused(tokens: list[str]) -> None:
    with pytest.raises(ValueError, match=r"^f\.txt: expected .*characters"):
        CharacterVocabulary(tokens, "f.txt")

import random
from pathlib import Path

import pytest
import sentencepiece
import tensorflow as tf
import tensorflow_text

from seq2seq_memattn.vocabulary import (
    END_ID,
    NUM_SPECIAL_IDS,
    PAD_ID,
    START_ID,
    SubwordVocabulary,
    subwords,
    vocabulary_from_dict,
)
from tests.texts import OURS, STRANGE, sentencepiece_model, sentences


@pytest.fixture(scope="module")
def model() -> bytes:
    return sentencepiece_model(**OURS)


@pytest.fixture(scope="module")
def foreign_model() -> bytes:
    return sentencepiece_model(
        vocab_size=150
    )  # SentencePiece's default special ids: unknown 0, start 1, end 2


def test_the_ids_of_a_model_of_the_project_are_those_of_the_model(model: bytes) -> None:
    vocabulary = SubwordVocabulary(model, "m.model", splits_at_spaces=True)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert vocabulary.id_offset == 0
    assert vocabulary.size == 420
    assert (processor.pad_id(), processor.bos_id(), processor.eos_id()) == (
        PAD_ID,
        START_ID,
        END_ID,
    )
    for line in sentences(50, seed=4):
        assert vocabulary.encode(line) == processor.encode(line)
        assert vocabulary.decode([START_ID, *vocabulary.encode(line), END_ID, PAD_ID]) == line


@pytest.mark.parametrize("line", STRANGE)
@pytest.mark.parametrize("splits_at_spaces", [False, True])
def test_no_character_is_unknown(model: bytes, line: str, splits_at_spaces: bool) -> None:
    vocabulary = SubwordVocabulary(model, "m.model", splits_at_spaces)
    assert vocabulary.has_byte_fallback
    ids = vocabulary.encode(line)
    assert min(ids) > 3
    assert vocabulary.decode(ids) == line


def test_words_one_by_one_are_encoded_as_the_whole_line(
    model: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subwords, "MAX_CACHED_WORDS", 7)  # so the cache drops words
    vocabulary = SubwordVocabulary(model, "m.model", splits_at_spaces=True)
    plain = SubwordVocabulary(model, "m.model")
    generator = random.Random(1)
    alphabet = "aböki  \u2581\u00a0\r\t日\u2028\0e\u0301 "
    lines = ["".join(generator.choices(alphabet, k=generator.randrange(14))) for _ in range(3000)]
    for line in lines + sentences(200, seed=5):
        assert vocabulary.encode(line) == plain.encode(line), repr(line)


def test_placeholders_that_the_text_never_had_come_through_in_bytes(model: bytes) -> None:
    vocabulary = SubwordVocabulary(model, "subwords.model")
    line = "a ⟨0⟩ b ⟨12⟩"
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert processor.encode("⟨", out_type=str)[-3:] == ["<0xE2>", "<0x9F>", "<0xA8>"]
    assert vocabulary.decode(vocabulary.encode(line)) == line


def test_text_without_spaces_is_not_remembered(model: bytes) -> None:
    vocabulary = SubwordVocabulary(model, "m.model", splits_at_spaces=True)
    line = "日本" * 17
    assert vocabulary.encode(line) == vocabulary.encode(line) == vocabulary._encode(line)
    assert not vocabulary._cache


def test_the_ids_handed_out_are_not_those_remembered(model: bytes) -> None:
    vocabulary = SubwordVocabulary(model, "m.model", splits_at_spaces=True)
    first = vocabulary.encode("ba")
    first.append(END_ID)
    assert vocabulary.encode("ba") == first[:-1]


@pytest.mark.parametrize("character", ["\n", "\r", "\r\n"])
def test_a_line_break_spelt_in_bytes_becomes_a_space(model: bytes, character: str) -> None:
    vocabulary = SubwordVocabulary(model, "m.model")
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [f"<0x{ord(c):02X}>" for c in character]
    ids = [processor.piece_to_id(piece) for piece in pieces]
    text = vocabulary.decode([*vocabulary.encode("ba"), *ids, *vocabulary.encode("ki")])
    assert text == "ba" + " " * len(character) + " ki"


def test_bytes_that_are_no_character_do_not_stop_decoding(model: bytes) -> None:
    vocabulary = SubwordVocabulary(model, "m.model")
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    text = vocabulary.decode([processor.piece_to_id("<0xE6>"), *vocabulary.encode("ba")])
    assert text.endswith("ba")
    assert vocabulary.decode([]) == ""


def test_another_model_keeps_its_order_behind_the_special_ids(foreign_model: bytes) -> None:
    vocabulary = SubwordVocabulary(foreign_model, "m.model")
    processor = sentencepiece.SentencePieceProcessor(model_proto=foreign_model)
    assert vocabulary.id_offset == NUM_SPECIAL_IDS
    assert vocabulary.size == NUM_SPECIAL_IDS + 150
    assert not vocabulary.has_byte_fallback
    for line in sentences(20, seed=6):
        ids = vocabulary.encode(line)
        assert ids == [i + 3 for i in processor.encode(line)]
        assert vocabulary.decode([*ids, END_ID]) == line
    assert vocabulary.encode("日")[-1] == processor.unk_id() + 3
    # Every id that a model can predict can be decoded.
    assert isinstance(vocabulary.decode(range(3, vocabulary.size)), str)


def test_the_graph_encodes_and_decodes_as_the_vocabulary(model: bytes) -> None:
    tokenizer = tensorflow_text.SentencepieceTokenizer(model)
    vocabulary = SubwordVocabulary(model, "m.model", splits_at_spaces=True)
    lines = [*sentences(20, seed=7), *STRANGE, "ba\rki"]
    in_graph = tf.function(tokenizer.tokenize)(tf.constant(lines)).to_list()
    assert in_graph == [vocabulary.encode(line) for line in lines]


def test_a_vocabulary_is_rebuilt_from_its_dict_and_its_file(model: bytes, tmp_path: Path) -> None:
    vocabulary = SubwordVocabulary(model, "m.model", splits_at_spaces=True)
    (tmp_path / "m.model").write_bytes(model)
    again = vocabulary_from_dict(vocabulary.to_dict(), tmp_path)
    assert again.to_dict() == vocabulary.to_dict()
    assert again.to_dict()["splits_at_spaces"] is True
    assert again.encode("ba dö") == vocabulary.encode("ba dö")


@pytest.mark.parametrize("content", [b"", b"words\n", b"\x00" * 100])
def test_what_is_no_model_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"^m\.model: expected a SentencePiece model, got"):
        SubwordVocabulary(content, "m.model")

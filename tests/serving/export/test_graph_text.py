from typing import Any

import pytest
import tensorflow as tf

from seq2seq_memattn.serving.export.graph_text import graph_vocabulary, pieces_with_ends
from seq2seq_memattn.vocabulary import (
    END_ID,
    PAD_ID,
    CharacterVocabulary,
    SubwordVocabulary,
    SymbolVocabulary,
    Vocabulary,
    WordVocabulary,
)
from tests.texts import OURS, STRANGE, sentencepiece_model, sentences

KINDS = ("subwords", "foreign subwords", "words", "characters", "symbols")
TEXTS = ["", " ", "  ba  dö ", "más", "\N{REPLACEMENT CHARACTER}", "\u2581ba", *STRANGE]


@pytest.fixture(scope="module")
def vocabularies() -> dict[str, Vocabulary]:
    texts = sentences(50, seed=1)
    return {
        "subwords": SubwordVocabulary(sentencepiece_model(**OURS), "m.model", True),
        "foreign subwords": SubwordVocabulary(sentencepiece_model(vocab_size=150), "f.model"),
        "words": WordVocabulary(sorted({*" ".join(texts).split(" ")}), "words.txt"),
        "characters": CharacterVocabulary(sorted({*" ".join(texts)}), "characters.txt"),
        "symbols": SymbolVocabulary(sorted({*" ".join(texts).split(" ")})),
    }


def texts_for(kind: str) -> list[str]:
    texts = sentences(20, seed=1)
    return [*texts, "", "  ", f" {texts[0]}  {texts[1]}"] if kind == "symbols" else texts + TEXTS


@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_texts_are_those_of_the_vocabulary(
    kind: str, vocabularies: dict[str, Vocabulary]
) -> None:
    vocabulary, texts = vocabularies[kind], texts_for(kind)
    graph = graph_vocabulary(vocabulary)
    encode: Any = tf.function(graph.encode)
    ids = encode(tf.constant(texts))
    assert ids.dtype == tf.int32
    assert ids.to_list() == [vocabulary.encode(text) for text in texts]
    decode: Any = tf.function(graph.decode)
    decoded = [text.decode() for text in decode(ids).numpy()]
    assert decoded == [vocabulary.decode(found) for found in ids.to_list()]


@pytest.mark.parametrize("kind", KINDS)
def test_no_texts_have_no_ids(kind: str, vocabularies: dict[str, Vocabulary]) -> None:
    graph = graph_vocabulary(vocabularies[kind])
    ids = graph.encode(tf.constant([], tf.string))
    assert ids.to_list() == [] and graph.decode(ids).shape == (0,)


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_are_named_with_ends_and_without_padding(
    kind: str, vocabularies: dict[str, Vocabulary]
) -> None:
    vocabulary = vocabularies[kind]
    text = sentences(1, seed=1)[0]
    ids = vocabulary.encode(text)
    every = tf.constant([[*ids, END_ID, PAD_ID]])
    graph = graph_vocabulary(vocabulary)
    pieces = pieces_with_ends(graph, every, every == END_ID, every == PAD_ID)
    *found, end, padding = [piece.decode() for piece in pieces.numpy()[0]]
    assert (end, padding) == ("</s>", "")
    separator = " " if kind in ("words", "symbols") else ""
    joined = separator.join(found).replace("\u2581", " ")
    assert joined.strip() == text


@pytest.mark.parametrize("kind", ["subwords", "words", "characters"])
def test_bytes_that_are_no_text_are_encoded_too(
    kind: str, vocabularies: dict[str, Vocabulary]
) -> None:
    graph = graph_vocabulary(vocabularies[kind])
    ids = graph.encode(tf.constant([bytes(range(256)), b"\xff\xfe", b"\x80"]))
    assert all(0 <= token < vocabularies[kind].size for token in ids.flat_values.numpy())
    assert len(graph.decode(ids)) == 3


def test_an_unknown_symbol_is_named(vocabularies: dict[str, Vocabulary]) -> None:
    graph = graph_vocabulary(vocabularies["symbols"])
    encode: Any = tf.function(graph.encode)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[unknown symbol .'wrong.'\]"):
        encode(tf.constant(["ba", "ba wrong"]))
    # TensorFlow cannot raise errors whose messages are not UTF-8.
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="unknown symbol .'\N{REPLACEMENT CHARACTER}"
    ):
        encode(tf.constant([b"ba \xff"]))


def complaints(graph: Any, *texts: str | bytes) -> list[str]:
    found = tf.function(graph.complaints)(tf.constant(texts))
    return [complaint.decode() for complaint in found.numpy()]


def test_each_text_with_an_unknown_symbol_has_a_complaint(
    vocabularies: dict[str, Vocabulary],
) -> None:
    graph = graph_vocabulary(vocabularies["symbols"])
    known = vocabularies["symbols"].decode([5])
    found = complaints(graph, "", known, f"{known} x {known} y", b"\xff", f" {known} ")
    replaced = "unknown symbol '\N{REPLACEMENT CHARACTER}'"
    assert found == ["", "", "unknown symbol 'x'", replaced, ""]


@pytest.mark.parametrize("kind", ["subwords", "words", "characters"])
def test_a_vocabulary_that_encodes_every_text_has_no_complaint(
    kind: str, vocabularies: dict[str, Vocabulary]
) -> None:
    graph = graph_vocabulary(vocabularies[kind])
    assert not graph.is_closed
    assert not any(complaints(graph, *TEXTS))


def test_a_text_of_ids_contains_neither_padding_nor_ids_that_the_model_does_not_embed() -> None:
    graph = graph_vocabulary(None, num_ids=10, left_out=[0])
    found = complaints(graph, "1 9", "1 10", "0 1", "-1", "1.5", "9999999999")
    assert found == [
        "",
        *(f"unknown symbol '{text}'" for text in ["10", "0", "-1", "1.5", "9999999999"]),
    ]
    with pytest.raises(tf.errors.InvalidArgumentError, match="unknown symbol '10'"):
        graph.encode(tf.constant(["1 10"]))


@pytest.mark.parametrize(("unknown", "ids"), [([], None), (["[UNK]"], [4, 3, 3])])
def test_the_token_of_padding_is_an_unknown_token_in_a_text(
    unknown: list[str], ids: list[int] | None
) -> None:
    tokens = ["<pad>", "a", "b", *unknown, "c", "d"]
    graph = graph_vocabulary(tokens, num_ids=len(tokens) - 1, left_out=[0])
    text = "c <pad> d"  # the model does not embed the last token
    if ids is None:
        assert complaints(graph, text) == ["unknown symbol '<pad>'"]
    else:
        assert graph.encode(tf.constant([text])).to_list() == [ids]


def test_unknown_words_are_refused_if_texts_may_not_contain_their_token() -> None:
    graph = graph_vocabulary(["[UNK]", "a", "b"], num_ids=3, left_out=[0])
    assert graph.is_closed
    assert complaints(graph, "a x", "b") == ["unknown symbol 'x'", ""]


def test_a_newline_that_is_spelt_in_bytes_ends_no_line(
    vocabularies: dict[str, Vocabulary],
) -> None:
    graph = graph_vocabulary(vocabularies["subwords"])
    assert graph.decode(graph.encode(tf.constant(["a\nb\rc"]))).numpy().tolist() == [b"a b c"]

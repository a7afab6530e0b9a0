"""Vocabularies inside of TensorFlow's graph: the same ids and texts as those of `vocabulary/`."""

from collections.abc import Callable
from typing import Any, Protocol

import tensorflow as tf
import tensorflow_text as tf_text

from seq2seq_memattn.vocabulary import (
    END_ID,
    NUM_SPECIAL_IDS,
    PAD_ID,
    UNKNOWN_ID,
    CharacterVocabulary,
    SubwordVocabulary,
    SymbolVocabulary,
    Vocabulary,
    WordVocabulary,
)

Function = Callable[[Any], Any]

END_PIECE = "</s>"


class GraphVocabulary(Protocol):
    """What a kind of vocabulary does in the graph; a `tf.Module`, which a SavedModel keeps."""

    def encode(self, texts: Any) -> Any:
        """Ids of texts, ragged int32 [batch, None], without start and end token.

        Fails with InvalidArgumentError for what the vocabulary cannot express, and names it.
        """

    def decode(self, ids: Any) -> Any:
        """Texts of ids that are in [3, size): string [batch] of ragged int32 [batch, None]."""

    def pieces(self, ids: Any) -> Any:
        """The token of each id that is in [3, size): string of the shape of `ids`, int32."""


def graph_vocabulary(vocabulary: Vocabulary) -> GraphVocabulary:
    """The same vocabulary in the graph."""
    if isinstance(vocabulary, SubwordVocabulary):
        return _Subwords(vocabulary)
    if isinstance(vocabulary, WordVocabulary):
        return _Listed(vocabulary, _between_spaces, " ")
    if isinstance(vocabulary, CharacterVocabulary):
        return _Listed(vocabulary, _characters, "")
    if isinstance(vocabulary, SymbolVocabulary):
        return _Listed(vocabulary, _between_spaces, " ", is_closed=True)
    raise ValueError(f"expected a vocabulary that can be in a graph, got {vocabulary!r}")


def pieces_with_ends(vocabulary: GraphVocabulary, ids: Any) -> Any:
    """The tokens of padded ids, as `GraphVocabulary.pieces`; "</s>" ends, "" is padding."""
    found = vocabulary.pieces(tf.maximum(ids, NUM_SPECIAL_IDS))
    found = tf.where(ids == END_ID, END_PIECE, found)
    return tf.where(ids == PAD_ID, "", found)


class _Subwords(tf.Module):
    """A SentencePiece model."""

    def __init__(self, vocabulary: SubwordVocabulary) -> None:
        super().__init__()
        self._offset = vocabulary.id_offset
        self._tokenizer = tf_text.SentencepieceTokenizer(vocabulary.content, out_type=tf.int32)

    def encode(self, texts: Any) -> Any:
        return self._tokenizer.tokenize(texts) + self._offset

    def decode(self, ids: Any) -> Any:
        texts = self._tokenizer.detokenize(ids - self._offset)
        return tf.strings.regex_replace(texts, "[\r\n]", " ")

    def pieces(self, ids: Any) -> Any:
        return self._tokenizer.id_to_string(ids - self._offset)


class _Listed(tf.Module):
    """A list of tokens.

    Args:
        vocabulary: each of its ids from 3 on is that of a token.
        split: string [batch] to the tokens of each text, ragged string [batch, None].
        separator: what stands between tokens.
        is_closed: whether there is no unknown token, so that others are errors.
    """

    def __init__(
        self, vocabulary: Vocabulary, split: Function, separator: str, is_closed: bool = False
    ) -> None:
        super().__init__()
        self._split = split
        self._separator = separator
        self._is_closed = is_closed
        ids = range(NUM_SPECIAL_IDS, vocabulary.size)
        self._tokens = tf.constant([vocabulary.decode([i]) for i in ids])
        entries = tf.lookup.KeyValueTensorInitializer(self._tokens, tf.constant(ids, tf.int32))
        self._ids = tf.lookup.StaticHashTable(entries, PAD_ID if is_closed else UNKNOWN_ID)

    def encode(self, texts: Any) -> Any:
        tokens = self._split(texts)
        ids = self._ids.lookup(tokens.flat_values)
        unknown = tf.boolean_mask(tokens.flat_values, ids == PAD_ID)
        checks = [tf.debugging.Assert(tf.size(unknown) == 0, [_unknown_symbol(unknown)])]
        with tf.control_dependencies(checks if self._is_closed else []):
            return tokens.with_flat_values(tf.identity(ids))

    def decode(self, ids: Any) -> Any:
        return tf.strings.reduce_join(self.pieces(ids), axis=-1, separator=self._separator)

    def pieces(self, ids: Any) -> Any:
        return tf.ragged.map_flat_values(tf.gather, self._tokens, ids - NUM_SPECIAL_IDS)


def _unknown_symbol(unknown: Any) -> Any:
    """The message about unknown symbols, string [n]: in UTF-8, whatever the first one is."""
    first = tf.strings.unicode_transcode(unknown[:1], "UTF-8", "UTF-8", errors="replace")
    return tf.strings.join(["unknown symbol '", tf.strings.reduce_join(first), "'"])


def _characters(texts: Any) -> Any:
    return tf.strings.unicode_split(texts, "UTF-8")


def _between_spaces(texts: Any) -> Any:
    parts = tf.strings.split(texts, " ")
    return tf.ragged.boolean_mask(parts, tf.not_equal(parts, ""))

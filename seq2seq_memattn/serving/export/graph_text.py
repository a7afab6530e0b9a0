"""Vocabularies in a TensorFlow graph, with the same ids and texts as those of `vocabulary/`."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import tensorflow as tf

from seq2seq_memattn.vocabulary import (
    NUM_SPECIAL_IDS,
    UNKNOWN_ID,
    CharacterVocabulary,
    SubwordVocabulary,
    SymbolVocabulary,
    Vocabulary,
    WordVocabulary,
)

Function = Callable[[Any], Any]

END_PIECE = "</s>"
UNKNOWN = "[UNK]"
_NOWHERE = -1  # the id of an unknown token


class GraphVocabulary(Protocol):
    """A vocabulary in a graph; also a `tf.Module`, so that a SavedModel keeps its tables."""

    first_id: int
    """The id of the first token; smaller ids are special."""

    def encode(self, texts: Any) -> Any:
        """Ids of texts, ragged int32 [batch, None], without start and end token.

        Fails with InvalidArgumentError for a token that the vocabulary cannot encode, and names it.
        """

    def decode(self, ids: Any) -> Any:
        """Texts of ids from `first_id` on: string [batch] of ragged int32 [batch, None]."""

    def pieces(self, ids: Any) -> Any:
        """The token of each id from `first_id` on: string of the shape of `ids`, int32."""


def graph_vocabulary(vocabulary: Vocabulary | Sequence[str] | None) -> GraphVocabulary:
    """Makes the graph form of a vocabulary.

    Args:
        vocabulary: a `Vocabulary`; or a list of tokens from id 0 on, as
            `keras.layers.TextVectorization.get_vocabulary` returns it, for texts with spaces
            between tokens; or None for texts of ids. With a list, unknown tokens become `UNKNOWN`
            if the list has it, and are errors otherwise.

    Raises:
        ValueError: if the vocabulary is of another kind, has a token twice or no token, or a list
            contains anything but strings.
    """
    if vocabulary is None:
        return _Numbers()
    if isinstance(vocabulary, SubwordVocabulary):
        return _Subwords(vocabulary)
    if isinstance(vocabulary, Sequence) and not isinstance(vocabulary, str):
        for token in vocabulary:
            if not isinstance(token, str):
                raise ValueError(f"expected a list of strings; got {token!r} in it")
        unknown = vocabulary.index(UNKNOWN) if UNKNOWN in vocabulary else None
        return _Listed(list(vocabulary), 0, unknown, _between_spaces, " ")
    separators: dict[Any, tuple[Function, str]] = {
        WordVocabulary: (_between_spaces, " "),
        CharacterVocabulary: (_characters, ""),
        SymbolVocabulary: (_between_spaces, " "),
    }
    for kind, (split, separator) in separators.items():
        if isinstance(vocabulary, kind):
            tokens = [vocabulary.decode([i]) for i in range(NUM_SPECIAL_IDS, vocabulary.size)]
            unknown = None if kind is SymbolVocabulary else UNKNOWN_ID
            return _Listed(tokens, NUM_SPECIAL_IDS, unknown, split, separator)
    raise ValueError(
        "expected a vocabulary that can be in a graph, a list of strings, or None; got "
        f"{vocabulary!r}"
    )


def pieces_with_ends(vocabulary: GraphVocabulary, ids: Any, is_end: Any, is_padding: Any) -> Any:
    """The tokens of ids, see `GraphVocabulary.pieces`; "</s>" for the end, "" for padding."""
    found = vocabulary.pieces(tf.where(is_end | is_padding, vocabulary.first_id, ids))
    found = tf.where(is_end, END_PIECE, found)
    return tf.where(is_padding, "", found)


class _Subwords(tf.Module):
    """A SentencePiece model in a graph."""

    first_id = NUM_SPECIAL_IDS

    def __init__(self, vocabulary: SubwordVocabulary) -> None:
        super().__init__()
        # Imported here: no other vocabulary needs it, and not every platform has it.
        import tensorflow_text as tf_text

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
    """A vocabulary that is a list of tokens, in a graph.

    Args:
        tokens: the tokens from `first_id` on.
        first_id: int. The id of the first token.
        unknown_id: the id of unknown tokens; None: they are errors.
        split: turns texts, string [batch], into their tokens, ragged string [batch, None].
        separator: text between two tokens.
    """

    def __init__(
        self,
        tokens: list[str],
        first_id: int,
        unknown_id: int | None,
        split: Function,
        separator: str,
    ) -> None:
        super().__init__()
        if len(set(tokens)) < len(tokens):
            twice = next(token for token in tokens if tokens.count(token) > 1)
            raise ValueError(f"expected each token of a vocabulary once; got {twice!r} twice")
        if not any(tokens):
            raise ValueError(f"expected a vocabulary with tokens; got {tokens}")
        self.first_id = first_id
        self._split = split
        self._separator = separator
        self._is_closed = unknown_id is None
        self._tokens = tf.constant(tokens)
        ids = tf.range(first_id, first_id + len(tokens))
        entries = tf.lookup.KeyValueTensorInitializer(self._tokens, ids)
        self._ids = tf.lookup.StaticHashTable(entries, _NOWHERE if self._is_closed else unknown_id)

    def encode(self, texts: Any) -> Any:
        tokens = self._split(texts)
        ids = self._ids.lookup(tokens.flat_values)
        unknown = tf.boolean_mask(tokens.flat_values, ids == _NOWHERE)
        checks = [tf.debugging.Assert(tf.size(unknown) == 0, [_unknown_symbol(unknown)])]
        with tf.control_dependencies(checks if self._is_closed else []):
            return tokens.with_flat_values(tf.identity(ids))

    def decode(self, ids: Any) -> Any:
        return tf.strings.reduce_join(self.pieces(ids), axis=-1, separator=self._separator)

    def pieces(self, ids: Any) -> Any:
        return tf.ragged.map_flat_values(tf.gather, self._tokens, ids - self.first_id)


class _Numbers(tf.Module):
    """No vocabulary: a text consists of ids with spaces between them."""

    first_id = 0

    def encode(self, texts: Any) -> Any:
        words = _between_spaces(texts)
        is_number = tf.strings.regex_full_match(words.flat_values, "[0-9]{1,9}")
        unknown = tf.boolean_mask(words.flat_values, ~is_number)
        check = tf.debugging.Assert(tf.size(unknown) == 0, [_unknown_symbol(unknown)])
        with tf.control_dependencies([check]):
            numbers = tf.where(is_number, words.flat_values, "0")
        return words.with_flat_values(tf.strings.to_number(numbers, tf.int32))

    def decode(self, ids: Any) -> Any:
        return tf.strings.reduce_join(self.pieces(ids), axis=-1, separator=" ")

    def pieces(self, ids: Any) -> Any:
        return tf.ragged.map_flat_values(tf.strings.as_string, ids)


def _unknown_symbol(unknown: Any) -> Any:
    """The message about the first of some unknown symbols, string [n]; always valid UTF-8."""
    first = tf.strings.unicode_transcode(unknown[:1], "UTF-8", "UTF-8", errors="replace")
    return tf.strings.join(["unknown symbol '", tf.strings.reduce_join(first), "'"])


def _characters(texts: Any) -> Any:
    return tf.strings.unicode_split(texts, "UTF-8")


def _between_spaces(texts: Any) -> Any:
    parts = tf.strings.split(texts, " ")
    return tf.ragged.boolean_mask(parts, tf.not_equal(parts, ""))

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
_DIGITS = 9  # limit on the digits of an id in a text; such numbers fit int32


class GraphVocabulary(Protocol):
    """A vocabulary in a graph; also a `tf.Module`, so that a SavedModel keeps its tables."""

    first_id: int
    """The id of the first token; smaller ids are special."""

    is_closed: bool
    """Whether there are texts that cannot be encoded."""

    def encode(self, texts: Any) -> Any:
        """Ids of texts, ragged int32 [batch, None], without start and end token.

        Fails with InvalidArgumentError for a token that the vocabulary cannot encode, and names it.
        """

    def complaints(self, texts: Any) -> Any:
        """The reason why each text cannot be encoded, or "" if the text can be: string [batch].

        The reasons are valid UTF-8, even if the texts are not.
        """

    def decode(self, ids: Any) -> Any:
        """Texts, string [batch], of ids from `first_id` on, ragged int32 [batch, None]."""

    def pieces(self, ids: Any) -> Any:
        """The token of each id, as strings of the shape of `ids` (int32, from `first_id` on)."""


def graph_vocabulary(
    vocabulary: Vocabulary | Sequence[str] | None,
    num_ids: int | None = None,
    left_out: Sequence[int] = (),
) -> GraphVocabulary:
    """Makes the graph form of a vocabulary.

    Args:
        vocabulary: a `Vocabulary`; or a list of tokens from id 0 on, as
            `keras.layers.TextVectorization.get_vocabulary` returns it, for texts with spaces
            between tokens; or None for texts of ids. With a list, unknown tokens become `UNKNOWN`
            if texts may contain it, and are errors otherwise.
        num_ids: int or None. With a list or None as vocabulary: texts may contain only smaller ids.
        left_out: with a list or None as vocabulary: ids that texts may not contain.

    Raises:
        ValueError: if the vocabulary is of another kind, has a token twice or no token, or a list
            contains anything but strings.
    """
    if vocabulary is None:
        return _Numbers(num_ids, left_out)
    if isinstance(vocabulary, SubwordVocabulary):
        return _Subwords(vocabulary)
    if isinstance(vocabulary, Sequence) and not isinstance(vocabulary, str):
        for token in vocabulary:
            if not isinstance(token, str):
                raise ValueError(f"expected a list of strings; got {token!r} in it")
        ids = [i for i in range(len(vocabulary))[:num_ids] if i not in left_out]
        unknown = next((i for i in ids if vocabulary[i] == UNKNOWN), None)
        return _Listed(list(vocabulary), 0, ids, unknown, _between_spaces, " ")
    separators: dict[Any, tuple[Function, str]] = {
        WordVocabulary: (_between_spaces, " "),
        CharacterVocabulary: (_characters, ""),
        SymbolVocabulary: (_between_spaces, " "),
    }
    for kind, (split, separator) in separators.items():
        if isinstance(vocabulary, kind):
            tokens = [vocabulary.decode([i]) for i in range(NUM_SPECIAL_IDS, vocabulary.size)]
            unknown = None if kind is SymbolVocabulary else UNKNOWN_ID
            ids = list(range(NUM_SPECIAL_IDS, vocabulary.size))
            return _Listed(tokens, NUM_SPECIAL_IDS, ids, unknown, split, separator)
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
    is_closed = False

    def __init__(self, vocabulary: SubwordVocabulary) -> None:
        super().__init__()
        # Imported here: no other vocabulary needs it, and not every platform has it.
        import tensorflow_text as tf_text

        self._offset = vocabulary.id_offset
        self._tokenizer = tf_text.SentencepieceTokenizer(vocabulary.content, out_type=tf.int32)

    def encode(self, texts: Any) -> Any:
        return self._tokenizer.tokenize(texts) + self._offset

    def complaints(self, texts: Any) -> Any:
        return tf.fill(tf.shape(texts), "")

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
        ids: the ids that texts can contain.
        unknown_id: the id of all other tokens; None: they are errors.
        split: turns texts, string [batch], into their tokens, ragged string [batch, None].
        separator: text between two tokens.
    """

    def __init__(
        self,
        tokens: list[str],
        first_id: int,
        ids: list[int],
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
        self.is_closed = unknown_id is None
        self._split = split
        self._separator = separator
        self._tokens = tf.constant(tokens)
        entries = tf.lookup.KeyValueTensorInitializer(
            tf.constant([tokens[i - first_id] for i in ids], tf.string), tf.constant(ids, tf.int32)
        )
        self._ids = tf.lookup.StaticHashTable(entries, _NOWHERE if self.is_closed else unknown_id)

    def encode(self, texts: Any) -> Any:
        tokens = self._split(texts)
        ids = tokens.with_flat_values(self._ids.lookup(tokens.flat_values))
        return _checked(ids, tokens, ids.flat_values == _NOWHERE) if self.is_closed else ids

    def complaints(self, texts: Any) -> Any:
        tokens = self._split(texts)
        return _complaints(tokens, self._ids.lookup(tokens.flat_values) == _NOWHERE)

    def decode(self, ids: Any) -> Any:
        return tf.strings.reduce_join(self.pieces(ids), axis=-1, separator=self._separator)

    def pieces(self, ids: Any) -> Any:
        return tf.ragged.map_flat_values(tf.gather, self._tokens, ids - self.first_id)


class _Numbers(tf.Module):
    """No vocabulary: a text consists of ids with spaces between them.

    Args:
        num_ids, left_out: see `graph_vocabulary`.
    """

    first_id = 0
    is_closed = True

    def __init__(self, num_ids: int | None, left_out: Sequence[int]) -> None:
        super().__init__()
        self._num_ids = 10**_DIGITS if num_ids is None else num_ids
        self._left_out = tuple(left_out)

    def encode(self, texts: Any) -> Any:
        words = _between_spaces(texts)
        ids, is_unknown = self._numbers(words.flat_values)
        return _checked(words.with_flat_values(ids), words, is_unknown)

    def complaints(self, texts: Any) -> Any:
        words = _between_spaces(texts)
        return _complaints(words, self._numbers(words.flat_values)[1])

    def decode(self, ids: Any) -> Any:
        return tf.strings.reduce_join(self.pieces(ids), axis=-1, separator=" ")

    def pieces(self, ids: Any) -> Any:
        return tf.ragged.map_flat_values(tf.strings.as_string, ids)

    def _numbers(self, words: Any) -> tuple[Any, Any]:
        """The number that each word stands for, and whether the word is not allowed in texts."""
        is_number = tf.strings.regex_full_match(words, f"[0-9]{{1,{_DIGITS}}}")
        numbers = tf.strings.to_number(tf.where(is_number, words, "0"), tf.int32)
        is_unknown = ~is_number | (numbers >= self._num_ids)
        for each in self._left_out:
            is_unknown |= numbers == each
        return numbers, is_unknown


def _complaints(tokens: Any, is_unknown: Any) -> Any:
    """The message about the first unknown token of each text, "" if there is none.

    Args:
        tokens: ragged string [batch, None].
        is_unknown: bool [tokens]. For each token of all texts, whether it is unknown.
    """
    unknown = tf.ragged.boolean_mask(tokens, tokens.with_flat_values(is_unknown))
    first = tf.strings.reduce_join(unknown[:, :1], axis=1)
    first = tf.strings.unicode_transcode(first, "UTF-8", "UTF-8", errors="replace")
    return tf.where(first == "", "", tf.strings.join(["unknown symbol '", first, "'"]))


def _checked(ids: Any, tokens: Any, is_unknown: Any) -> Any:
    """Ragged ids; fails with the complaint about the first unknown token, if there is one."""
    found = _complaints(tokens, is_unknown)
    found = tf.boolean_mask(found, found != "")
    check = tf.debugging.Assert(tf.size(found) == 0, [tf.strings.reduce_join(found[:1])])
    with tf.control_dependencies([check]):
        return ids.with_flat_values(tf.identity(ids.flat_values))


def _characters(texts: Any) -> Any:
    return tf.strings.unicode_split(texts, "UTF-8")


def _between_spaces(texts: Any) -> Any:
    parts = tf.strings.split(texts, " ")
    return tf.ragged.boolean_mask(parts, tf.not_equal(parts, ""))

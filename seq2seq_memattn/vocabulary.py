"""Vocabularies: from a line of text to token ids and back.

The ids of the special tokens are the same for every kind, so models, search and batches never ask a
vocabulary for them. The module needs neither TensorFlow nor Keras.
"""

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

PAD_ID = 0  # fills batches; the mask of a model is `ids != PAD_ID`
START_ID = 1  # first of target_inputs
END_ID = 2  # last of source and target_outputs
UNKNOWN_ID = 3  # only in the kinds that have an unknown token; an ordinary id elsewhere
NUM_SPECIAL_IDS = 3  # pad, start and end: what no kind gives another meaning


class Vocabulary(abc.ABC):
    """Maps lines of text to token ids and back; a new kind writes the four abstract members.

    A kind has a name in `to_dict()["kind"]` and a row in the table of `vocabulary_from_dict`. What
    it needs beside that dict, such as a model file, lies in the data directory.
    """

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of ids, the special ones included; every id is in [0, size)."""

    @abc.abstractmethod
    def encode(self, text: str) -> list[int]:
        """Returns the ids of one line, without start and end token.

        Raises:
            ValueError: if the line holds what the vocabulary cannot express. The message names it;
                the caller adds file and line.
        """

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Returns what `vocabulary_from_dict` needs: plain JSON values, and the name in "kind"."""

    @abc.abstractmethod
    def _decode_content(self, ids: Sequence[int]) -> str:
        """Returns the text of ids in [NUM_SPECIAL_IDS, size)."""

    @final
    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids up to the first end token, without pad and start tokens.

        Raises:
            ValueError: if an id before the end token is not in [0, size).
        """
        content = []
        for token in map(int, ids):
            if token == END_ID:
                break
            if not 0 <= token < self.size:
                raise ValueError(f"expected ids in [0, {self.size}), got {token}")
            if token not in (PAD_ID, START_ID):
                content.append(token)
        return self._decode_content(content)


@final
class SymbolVocabulary(Vocabulary):
    """A closed list of symbols, written with spaces between them, as in the copy task.

    There is no unknown token: the first symbol has id 3.

    Args:
        symbols: the symbols in the order of their ids; distinct, not empty, without white space.

    Raises:
        ValueError: if there are no symbols, or one of them breaks these rules.

    Example:
    >>> vocabulary = SymbolVocabulary(["a", "b"])
    >>> vocabulary.size, vocabulary.encode("b a b")
    (5, [4, 3, 4])
    >>> vocabulary.decode([4, 3, 4, END_ID, PAD_ID])
    'b a b'
    """

    KIND = "symbols"

    def __init__(self, symbols: Iterable[str]) -> None:
        self._symbols = tuple(symbols)
        if not self._symbols:
            raise ValueError("symbols: expected at least one, got none")
        for symbol in self._symbols:
            if symbol.split() != [symbol]:
                raise ValueError(
                    f"symbols: expected no white space and no empty one, got {symbol!r}"
                )
        self._ids = {symbol: i for i, symbol in enumerate(self._symbols, NUM_SPECIAL_IDS)}
        if len(self._ids) != len(self._symbols):
            raise ValueError("symbols: expected distinct ones, got one of them twice")

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any], directory: Path) -> "SymbolVocabulary":
        """Makes the vocabulary from `to_dict`; symbols need no file of the directory."""
        del directory
        symbols = spec.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(s, str) for s in symbols):
            raise ValueError(f"symbols: expected a list of strings, got {symbols!r}")
        return cls(symbols)

    @property
    def size(self) -> int:
        return NUM_SPECIAL_IDS + len(self._symbols)

    def encode(self, text: str) -> list[int]:
        # Only the space separates: a tab or a carriage return is part of a symbol, and so an error.
        symbols = [symbol for symbol in text.split(" ") if symbol]
        try:
            return [self._ids[symbol] for symbol in symbols]
        except KeyError as error:
            raise ValueError(
                f"unknown symbol {error.args[0]!r}, expected one of the vocabulary's "
                f"{len(self._symbols)}, {self._symbols[0]!r} to {self._symbols[-1]!r}"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.KIND, "symbols": list(self._symbols)}

    def _decode_content(self, ids: Sequence[int]) -> str:
        return " ".join(self._symbols[i - NUM_SPECIAL_IDS] for i in ids)


_KINDS: dict[str, Callable[[Mapping[str, Any], Path], Vocabulary]] = {
    SymbolVocabulary.KIND: SymbolVocabulary.from_dict,
}


def vocabulary_from_dict(spec: Mapping[str, Any], directory: Path | str) -> Vocabulary:
    """Makes the vocabulary that `Vocabulary.to_dict` described.

    Args:
        spec: the dict, with the kind's name in "kind".
        directory: the data directory, where a kind's own files lie.

    Returns:
        The vocabulary.

    Raises:
        ValueError: if the kind is unknown, or the dict is not one of its kind.
    """
    kind = spec.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"kind of vocabulary: expected one of {sorted(_KINDS)}, got {kind!r}")
    return _KINDS[kind](spec, Path(directory))

"""The vocabulary of the copy task: a closed list of symbols."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from seq2seq_memattn.vocabulary.base import NUM_SPECIAL_IDS, Vocabulary


@final
class SymbolVocabulary(Vocabulary):
    """Vocabulary of a closed list of symbols, separated by spaces, as in the copy task.

    There is no unknown token: the first symbol has id 3.

    Args:
        symbols: the symbols in the order of their ids; distinct, not empty, without white space.

    Raises:
        ValueError: if there are no symbols, or one of them breaks these rules.

    Example:
    >>> from seq2seq_memattn.vocabulary import SymbolVocabulary
    >>> vocabulary = SymbolVocabulary(["a", "b"])
    >>> vocabulary.size, vocabulary.encode("b a b")
    (5, [4, 3, 4])
    >>> vocabulary.decode([4, 3, 4, 2, 0])
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
                    f"symbols: expected non-empty ones without white space, got {symbol!r}"
                )
        self._ids = {symbol: i for i, symbol in enumerate(self._symbols, NUM_SPECIAL_IDS)}
        if len(self._ids) != len(self._symbols):
            raise ValueError("symbols: expected distinct ones, got one of them twice")

    @classmethod
    def from_dict(cls, spec: Mapping[str, Any], directory: Path) -> "SymbolVocabulary":
        """Makes the vocabulary from the dict that `to_dict` returned; symbols need no file."""
        del directory
        symbols = spec.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(s, str) for s in symbols):
            raise ValueError(f"symbols: expected a list of strings, got {symbols!r}")
        return cls(symbols)

    @property
    def size(self) -> int:
        return NUM_SPECIAL_IDS + len(self._symbols)

    def encode(self, text: str) -> list[int]:
        # Only spaces separate symbols. A tab or carriage return becomes part of a symbol, which is
        # then unknown, and so an error.
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

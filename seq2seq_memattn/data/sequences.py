"""Many token sequences of different lengths in two flat arrays."""

from array import array
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from seq2seq_memattn.text.files import iterate_lines
from seq2seq_memattn.vocabulary import Vocabulary

TokenIds = npt.NDArray[np.int32]


class TokenSequences:
    """An immutable list of token sequences; 4 bytes a token and 8 a sequence.

    Args:
        tokens: int32 [num_tokens]. All sequences, one after the other.
        lengths: int [num_sequences]. Their lengths in tokens; 0 is allowed.

    Raises:
        ValueError: if the lengths do not add up to the number of tokens.
    """

    def __init__(self, tokens: TokenIds, lengths: npt.NDArray[np.integer]) -> None:
        self._tokens = tokens
        self._offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        if self._offsets[-1] != len(tokens):
            raise ValueError(f"lengths: expected a sum of {len(tokens)}, got {self._offsets[-1]}")

    @classmethod
    def from_lists(cls, sequences: Iterable[Sequence[int]]) -> "TokenSequences":
        """Packs sequences as they come, so that they need not all exist at once."""
        tokens, lengths = array("i"), array("q")
        for sequence in sequences:
            tokens.extend(sequence)
            lengths.append(len(sequence))
        return cls(np.array(tokens, np.int32), np.array(lengths, np.int64))

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The lengths in tokens; int64 [num_sequences]."""
        return np.diff(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int) -> TokenIds:
        if not 0 <= index < len(self):
            raise IndexError(f"expected an index in [0, {len(self)}), got {index}")
        return self._tokens[self._offsets[index] : self._offsets[index + 1]]


def read_sequences(path: str, vocabulary: Vocabulary) -> TokenSequences:
    """Reads a text file, a sequence a line.

    Args:
        path: a text file; `.gz` and `-` are understood.
        vocabulary: turns a line into ids.

    Returns:
        The sequences, without start and end tokens.

    Raises:
        ValueError: if the file cannot be read, or a line is not in the vocabulary; names file and
            line.
    """

    def encoded() -> Iterable[list[int]]:
        for number, line in enumerate(iterate_lines(path), 1):
            try:
                yield vocabulary.encode(line)
            except ValueError as error:
                raise ValueError(f"{path}: line {number}: {error}") from None

    return TokenSequences.from_lists(encoded())

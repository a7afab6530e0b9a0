"""The interface of vocabularies: from a line of text to token ids and back.

The ids of the special tokens are the same for every kind, so models, search and batches never ask a
vocabulary for them.
"""

import abc
from collections.abc import Iterable, Sequence
from typing import Any, final

PAD_ID = 0  # fills batches; the mask of a model is `ids != PAD_ID`
START_ID = 1  # first of target_inputs
END_ID = 2  # last of source and target_outputs
UNKNOWN_ID = 3  # only in kinds with an unknown token; an ordinary id in others
NUM_SPECIAL_IDS = 3  # pad, start and end, which mean the same in every kind
UNKNOWN = "<unk>"  # how users write the unknown token


class Vocabulary(abc.ABC):
    """Maps lines of text to token ids and back; a new kind implements the four abstract members.

    A kind has a name in `to_dict()["kind"]` and a row in the table of `vocabulary_from_dict`. Other
    data that it needs, such as a model file, are in the data directory.

    Attributes:
        unknown_id: int or None. The id of the unknown token; None if the kind has none.
    """

    unknown_id: int | None = None

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of ids, the special ones included; every id is in [0, size)."""

    @abc.abstractmethod
    def encode(self, text: str) -> list[int]:
        """Returns the ids of one line, without start and end token; none of them is below 3.

        Raises:
            ValueError: if the vocabulary cannot express part of the line. The message names this
                part; the caller adds file and line.
        """

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Returns a dict for `vocabulary_from_dict`: JSON values, and the kind's name in "kind"."""

    @abc.abstractmethod
    def _decode_content(self, ids: Sequence[int]) -> str:
        """Returns the text of ids in [NUM_SPECIAL_IDS, size)."""

    @final
    def ids_of(self, token: str) -> list[int]:
        """The ids whose text is `token`; "<unk>" is the unknown token."""
        if token == UNKNOWN:
            return [] if self.unknown_id is None else [self.unknown_id]
        ids = range(NUM_SPECIAL_IDS, self.size) if token else ()  # "" would find a lone space mark
        return [i for i in ids if i != self.unknown_id and self._decode_content([i]) == token]

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

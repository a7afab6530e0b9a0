"""Many pairs of source and target in one flat array, and batches of them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seq2seq_memattn.data.batching import Batch, Indices, TokenIds, as_batch
from seq2seq_memattn.data.manifest import DataFile, verify_file
from seq2seq_memattn.data.records import Ids, unpack_records
from seq2seq_memattn.vocabulary import END_ID, PAD_ID


class TokenPairs:
    """An immutable list of pairs; as many bytes a token as its file has, and 32 a pair.

    Args:
        tokens: int [num_tokens]. The pairs one after the other, each a source and a target, each
            with its END_ID; see `records`.

    Attributes:
        source_lengths, target_lengths: int64 [num_pairs]. In tokens including the end token.
    """

    def __init__(self, tokens: Ids) -> None:
        self._tokens = tokens
        ends = np.flatnonzero(tokens == END_ID) + 1
        starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        lengths = ends - starts
        self._source_starts, self._target_starts = starts[0::2], starts[1::2]
        self.source_lengths, self.target_lengths = lengths[0::2], lengths[1::2]

    def __len__(self) -> int:
        return len(self._source_starts)

    def source(self, index: int) -> TokenIds:
        """Returns one source, without end token; int32 [source_length - 1]."""
        return self._cut(self._source_starts[index], self.source_lengths[index])

    def target(self, index: int) -> TokenIds:
        """Returns one target, without end token; int32 [target_length - 1]."""
        return self._cut(self._target_starts[index], self.target_lengths[index])

    def batch(self, indices: Indices, source_length: int, target_length: int) -> Batch:
        """Returns the padded batch of some pairs, which is what `batching.make_batch` describes.

        Args:
            indices: int64 [batch].
            source_length, target_length: the padded lengths in tokens including the end token, at
                least those of the longest.
        """
        source = self._padded(
            self._source_starts[indices], self.source_lengths[indices], source_length
        )
        target = self._padded(
            self._target_starts[indices], self.target_lengths[indices], target_length
        )
        return as_batch(source, target)

    def _cut(self, start: int, length: int) -> TokenIds:
        return self._tokens[start : start + length - 1].astype(np.int32)

    def _padded(self, starts: Indices, lengths: npt.NDArray[np.int64], width: int) -> TokenIds:
        columns = np.arange(width)
        is_token = columns < lengths[:, None]  # [batch, width]
        places = np.where(is_token, starts[:, None] + columns, 0)
        return np.where(is_token, self._tokens[places].astype(np.int32), PAD_ID)


def read_pairs(
    directory: Path, files: Sequence[DataFile], dtype: np.dtype[np.integer]
) -> TokenPairs:
    """Reads shards of a data directory.

    Args:
        directory: the data directory.
        files: its shards, as the manifest describes them; compared with their checksums.
        dtype: type of the ids, from `records.id_dtype`.

    Returns:
        The pairs of all the shards, in the order of the files.

    Raises:
        ValueError: if a shard is missing, changed or not one; names the file.
    """
    parts = []
    for file in files:
        path = directory / file.path
        verify_file(directory, file)
        try:
            parts.append(unpack_records(path.read_bytes(), dtype))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return TokenPairs(np.concatenate(parts))

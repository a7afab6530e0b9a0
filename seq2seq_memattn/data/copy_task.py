"""The copy task for a model: a text split of a data directory, as padded batches.

Any data directory whose splits are text can be read, if it fits into memory as token ids. The
module is plain NumPy; only `CopyTaskData.tf_dataset` needs TensorFlow.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seq2seq_memattn.data.batching import (
    FIRST_BATCH,
    Batch,
    BucketBatches,
    Indices,
    Position,
    fill_rows,
    make_batch,
    padded_length,
)
from seq2seq_memattn.data.manifest import Split, verify_file
from seq2seq_memattn.data.sequences import TokenSequences, read_sequences
from seq2seq_memattn.data.split_data import BUCKET_WIDTH, SplitData
from seq2seq_memattn.vocabulary import Vocabulary


class CopyTaskData(SplitData):
    """The examples of one split, and the batches of a run over them.

    What a batch holds is said by `make_batch`.

    Args:
        directory: a data directory with a manifest.
        split: "train" or "valid".
        batch_size: examples in a batch.
        bucket_width: width of a length bucket in tokens.
        seed: seed of the order.
        shuffle: False for evaluation: sorted by length.
        pad_to_multiple: None pads to the longest of a batch. An int gives few shapes, for XLA and
            JAX: lengths are rounded up to the bucket's boundary (at most to the split's longest),
            then to a multiple of this number of tokens; and incomplete batches are filled, see
            `fill_rows`.
        batch_tokens: see `BucketBatches`.

    Attributes:
        manifest: the directory's manifest.
        source_vocabulary, target_vocabulary: the vocabularies.
        source, target: the examples without start and end tokens, in the order of the files.
        batches: the `BucketBatches` that says which examples make up which batch.

    Raises:
        ValueError: if the directory, the split or a line is not as it should be; names the file and
            the line, from 1 on.
    """

    def __init__(
        self,
        directory: Path | str,
        split: str,
        batch_size: int,
        bucket_width: int = BUCKET_WIDTH,
        seed: int = 0,
        shuffle: bool = True,
        pad_to_multiple: int | None = None,
        batch_tokens: int = 0,
    ) -> None:
        directory = Path(directory)
        super().__init__(directory, batch_size, pad_to_multiple, batch_tokens)
        record = self.manifest.split(split)
        self.source = _read_side(directory, record, "source", self.source_vocabulary)
        self.target = _read_side(directory, record, "target", self.target_vocabulary)
        self._source_lengths = self.source.lengths + 1  # with the end token, as all below
        self._target_lengths = self.target.lengths + 1
        self._bucket_width = bucket_width
        self.batches = BucketBatches(
            np.maximum(self._source_lengths, self._target_lengths),
            batch_size,
            bucket_width,
            seed,
            shuffle,
            batch_tokens,
        )

    def __len__(self) -> int:
        return len(self.source)

    def references(self, count: int) -> list[str]:
        """Returns the text of the first `count` targets, which a score compares with."""
        return [self.target_vocabulary.decode(self.target[i]) for i in range(count)]

    def batch(self, indices: Indices) -> Batch:
        """Returns the padded batch of some examples, in the order of `indices`, perhaps filled."""
        source_length = self._padded_length(self._source_lengths, indices)
        target_length = self._padded_length(self._target_lengths, indices)
        batch = make_batch(
            [self.source[i] for i in indices],
            [self.target[i] for i in indices],
            source_length,
            target_length,
        )
        return fill_rows(batch, self._num_rows)

    def advance(self, position: Position, num_batches: int) -> Position:
        """Returns the position `num_batches` batches later; ValueError if `position` is none."""
        return self.batches.advance(position, num_batches)

    def numpy_batches(
        self, position: Position = FIRST_BATCH, num_epochs: int | None = None
    ) -> Iterator[tuple[Batch, Position]]:
        for indices, after in self.batches.iterate(position, num_epochs):
            yield self.batch(indices), after

    def _padded_length(self, lengths: npt.NDArray[np.int64], indices: Indices) -> int:
        return padded_length(
            int(lengths[indices].max()),
            int(lengths.max()),
            self._bucket_width,
            self._pad_to_multiple,
        )


def _read_side(directory: Path, split: Split, role: str, vocabulary: Vocabulary) -> TokenSequences:
    """Reads one side of a text split, and checks it against its manifest."""
    if split.file_format != "text":
        raise ValueError(f"{directory}: expected a split of text, got {split.file_format}")
    files = split.files_of(role)
    if len(files) != 1:
        raise ValueError(f"{directory}: expected one {role} file in a split, got {len(files)}")
    path = directory / files[0].path
    sequences = read_sequences(str(path), vocabulary)
    verify_file(directory, files[0])
    if len(sequences) != split.num_examples:
        raise ValueError(f"{path}: expected {split.num_examples} lines, got {len(sequences)}")
    return sequences

"""The copy task for a model: a text split of a data directory, as padded batches.

Any data directory whose splits are text can be read, if it fits into memory as token ids. The
module is plain NumPy; only `CopyTaskData.tf_dataset` needs TensorFlow.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..vocabulary import Vocabulary, vocabulary_from_dict
from .batching import (
    FIRST_BATCH,
    Batch,
    BucketBatches,
    Indices,
    Position,
    make_batch,
    padded_length,
    prefetched,
)
from .manifest import Split, read_manifest, verify_file
from .sequences import TokenSequences, read_sequences

if TYPE_CHECKING:
    import tensorflow as tf

BUCKET_WIDTH = 10  # tokens; google/seq2seq, example_configs/train_seq2seq.yml: 10,20,30,40


class CopyTaskData:
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
            then to a multiple of this number of tokens.
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
        if pad_to_multiple is not None and pad_to_multiple < 1:
            raise ValueError(f"pad_to_multiple: expected at least 1, got {pad_to_multiple}")
        directory = Path(directory)
        self.manifest = read_manifest(directory)
        self.source_vocabulary = vocabulary_from_dict(self.manifest.source_vocabulary, directory)
        self.target_vocabulary = vocabulary_from_dict(self.manifest.target_vocabulary, directory)
        record = self.manifest.split(split)
        self.source = _read_side(directory, record, "source", self.source_vocabulary)
        self.target = _read_side(directory, record, "target", self.target_vocabulary)
        self._source_lengths = self.source.lengths + 1  # with the end token, as all below
        self._target_lengths = self.target.lengths + 1
        self._bucket_width = bucket_width
        self._pad_to_multiple = pad_to_multiple
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
        """Returns the padded batch of some examples, in the order of `indices`."""
        source_length = self._padded_length(self._source_lengths, indices)
        target_length = self._padded_length(self._target_lengths, indices)
        return make_batch(
            [self.source[i] for i in indices],
            [self.target[i] for i in indices],
            source_length,
            target_length,
        )

    def advance(self, position: Position, num_batches: int) -> Position:
        """Returns the position `num_batches` batches later; ValueError if `position` is none."""
        return self.batches.advance(position, num_batches)

    def numpy_batches(
        self, position: Position = FIRST_BATCH, num_epochs: int | None = None
    ) -> Iterator[tuple[Batch, Position]]:
        """Yields the batches from a position on, each with the position after it.

        Args:
            position: the first batch to yield.
            num_epochs: epochs of the whole run, from epoch 0 on; None goes on for ever.
        """
        for indices, after in self.batches.iterate(position, num_epochs):
            yield self.batch(indices), after

    def tf_dataset(
        self, position: Position = FIRST_BATCH, num_epochs: int | None = None
    ) -> "tf.data.Dataset":
        """Returns the batches of `numpy_batches` as a prefetching tf.data.Dataset of dicts.

        The position after n of its batches is `batches.advance(position, n)`.
        """
        return prefetched(lambda: self.numpy_batches(position, num_epochs))

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

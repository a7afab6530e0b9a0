"""What the batches of a split have in common, whatever its files are."""

import abc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq_memattn.data.batching import (
    FIRST_BATCH,
    Batch,
    Position,
    iterate_prefetched,
    prefetched,
)
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.vocabulary import vocabulary_from_dict

if TYPE_CHECKING:
    import tensorflow as tf

BUCKET_WIDTH = 10  # tokens; google/seq2seq, example_configs/train_seq2seq.yml: 10,20,30,40


class SplitData(abc.ABC):
    """A split of a data directory; a kind of files writes `numpy_batches`.

    Args:
        directory: a data directory with a manifest.
        batch_size: examples in a batch.
        pad_to_multiple: see `padded_length`; also fills incomplete batches with empty examples, see
            `fill_rows`.
        batch_tokens: see `BucketBatches`; then batches are not filled.

    Attributes:
        manifest: the directory's manifest.
        source_vocabulary, target_vocabulary: the vocabularies.

    Raises:
        ValueError: if the directory or `pad_to_multiple` is not as it should be.
    """

    def __init__(
        self, directory: Path, batch_size: int, pad_to_multiple: int | None, batch_tokens: int
    ) -> None:
        if pad_to_multiple is not None and pad_to_multiple < 1:
            raise ValueError(f"pad_to_multiple: expected at least 1, got {pad_to_multiple}")
        self._pad_to_multiple = pad_to_multiple
        self._num_rows = batch_size if pad_to_multiple and not batch_tokens else 0
        self.manifest = read_manifest(directory)
        self.source_vocabulary = vocabulary_from_dict(self.manifest.source_vocabulary, directory)
        self.target_vocabulary = vocabulary_from_dict(self.manifest.target_vocabulary, directory)

    @abc.abstractmethod
    def numpy_batches(
        self, position: Position = FIRST_BATCH, num_epochs: int | None = None
    ) -> Iterator[tuple[Batch, Position]]:
        """Yields the batches from a position on, each with the position after it.

        Args:
            position: the first batch to yield.
            num_epochs: epochs of the whole run, from epoch 0 on; None goes on for ever.
        """

    def tf_dataset(
        self, position: Position = FIRST_BATCH, num_epochs: int | None = None
    ) -> "tf.data.Dataset":
        """Returns the batches of `numpy_batches` as a prefetching tf.data.Dataset of dicts.

        The position after n of its batches is `advance(position, n)`.
        """
        return prefetched(lambda: self.numpy_batches(position, num_epochs))

    def tf_batches(self, position: Position) -> Iterator[dict[str, "tf.Tensor"]]:
        """Iterates over the batches from a position on, for ever, as a `tf_dataset` makes them.

        What a file that is not as it should be raises is raised as it is.
        """
        return iterate_prefetched(lambda: self.numpy_batches(position))

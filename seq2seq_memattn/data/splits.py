"""Splits: one part of a data directory as padded batches, for the copy task and parallel text.

Memory holds at most two groups of shards, however large the corpus is: the group that batches are
made of, and the next one, which a thread reads ahead. Each epoch permutes the shards at random
(depending on the seed) and cuts them into groups. `BucketBatches` shuffles and batches the pairs of
a group. A split that is one group, such as a split of text, is read once.
"""

import functools
import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seq2seq_memattn.data.batching import (
    FIRST_BATCH,
    Batch,
    BucketBatches,
    Position,
    TokenIds,
    padded_lengths,
)
from seq2seq_memattn.data.groups import Group, make_group, numpy_batch, read_ahead
from seq2seq_memattn.data.manifest import read_manifest, verify_file
from seq2seq_memattn.data.pairs import TokenPairs, id_dtype, read_shards, read_text
from seq2seq_memattn.packages import needed
from seq2seq_memattn.text.files import iterate_lines
from seq2seq_memattn.vocabulary import vocabulary_from_dict

if TYPE_CHECKING:
    import tensorflow as tf

BUCKET_WIDTH = 10  # tokens; google/seq2seq, example_configs/train_seq2seq.yml: 10,20,30,40
GROUP_PAIRS = 500_000  # pairs shuffled together, give or take a shard; about 200 MiB


class SplitData:
    """One split of a data directory: its pairs, and their batches for training or evaluation.

    A batch has `source` (ids, end token, padding), `target_inputs` (start token, ids, padding) and
    `target_outputs` (ids, end token, padding), each int32 [batch, length]. NumPy and TensorFlow
    give the same batches, bit for bit.

    In a `Position`, the field `epoch` counts groups: in a split of n groups, group g of epoch e has
    the number e * n + g. The field `batch` counts from 0 within the group.

    Args:
        directory: a data directory with a manifest.
        split: "train", "valid" or the name of a test set.
        batch_size: pairs in a batch.
        bucket_width: width of a length bucket in tokens.
        seed: seed of the shuffling.
        shuffle: False for evaluation: shards stay in order, and each group is sorted by length.
        pad_to_multiple: int or None. None: batches are padded to their longest sequence. With an
            int, there are few shapes, for XLA and JAX: lengths are rounded up to the end of the
            bucket, then to a multiple of this number, and incomplete batches are filled with rows
            that have no effect.
        batch_tokens: see `BucketBatches`.
        group_pairs: the maximum number of pairs in a group, give or take a shard.

    Attributes:
        manifest: the directory's manifest.
        source_vocabulary, target_vocabulary: the vocabularies.

    Raises:
        ValueError: if the directory or a file of the split is missing or damaged, or a line cannot
            be encoded. The message names the file. With several groups, damage to a shard is found
            only when the shard is read.

    Example: `fit` over two epochs, each in its own order.

        data = SplitData("runs/data/copy_20", "train", batch_size=64)
        batches = data.fit_dataset()
        model.fit(batches, steps_per_epoch=data.num_batches, epochs=2, shuffle=False)
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
        group_pairs: int = GROUP_PAIRS,
    ) -> None:
        for name, value in (("pad_to_multiple", pad_to_multiple), ("group_pairs", group_pairs)):
            if value is not None and value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        self._directory = Path(directory)
        self.manifest = read_manifest(directory)
        self.source_vocabulary = vocabulary_from_dict(
            self.manifest.source_vocabulary, self._directory
        )
        self.target_vocabulary = vocabulary_from_dict(
            self.manifest.target_vocabulary, self._directory
        )
        self._dtype = id_dtype(self.source_vocabulary.size, self.target_vocabulary.size)
        self._split = self.manifest.split(split)
        is_text = self._split.file_format == "text"
        self._shards = () if is_text else self._split.files_of("examples")
        wanted = -(-self._split.num_examples // group_pairs)
        self._num_groups = max(1, min(len(self._shards), wanted))
        self._make_order = functools.partial(
            BucketBatches,
            batch_size=batch_size,
            bucket_width=bucket_width,
            seed=seed,
            shuffle=shuffle,
            batch_tokens=batch_tokens,
        )
        self._seed, self._shuffle = seed, shuffle
        limits = (self._split.max_source_length, self._split.max_target_length)
        self._widths = functools.partial(
            padded_lengths,
            limits=np.array(limits),
            bucket_width=bucket_width,
            multiple=pad_to_multiple,
        )
        self._fills = pad_to_multiple is not None
        self._num_batches: dict[int, int] = {}  # of each group read so far, by number
        if self._num_groups == 1:
            self._count(0)  # reads the files, so that errors come at once

    def __len__(self) -> int:
        return self._split.num_examples

    @property
    def num_batches(self) -> int:
        """Batches of the first epoch; with several groups, other epochs may differ slightly."""
        return self._batches_of_epochs(1)

    @functools.cached_property
    def pairs(self) -> TokenPairs:
        """All pairs in the order of the files; use it if the split fits into memory."""
        if self._shards:
            return read_shards(self._directory, self._shards, self._dtype)
        vocabularies = self.source_vocabulary, self.target_vocabulary
        return read_text(self._directory, self._split, *vocabularies, self._dtype)

    @functools.cached_property
    def source(self) -> list[TokenIds]:
        """All sources without end token, in the order of `pairs`."""
        return [self.pairs.source(i) for i in range(len(self))]

    @functools.cached_property
    def target(self) -> list[TokenIds]:
        """All targets without end token, in the order of `pairs`."""
        return [self.pairs.target(i) for i in range(len(self))]

    def references(self, count: int) -> list[str]:
        """Returns the original text of the first `count` targets, for scoring.

        Raises:
            ValueError: if the file is not the one that was prepared.
        """
        file = self._split.files_of("target")[0]
        verify_file(self._directory, file)
        return list(islice(iterate_lines(self._directory / file.path), count))

    def position_after(self, position: Position, num_batches: int) -> Position:
        """The position `num_batches` later; raises ValueError if `position` does not exist."""
        group, batch = position
        if group < 0 or not 0 <= batch < self._count(group):
            raise ValueError(f"position: expected one in this data, got {group} and {batch}")
        batch += num_batches
        while batch and batch >= self._count(group):  # batch 0 exists: no need to read the group
            batch -= self._count(group)
            group += 1
        return Position(group, batch)

    def numpy_batches(
        self, position: Position = FIRST_BATCH, num_epochs: int | None = None
    ) -> Iterator[tuple[Batch, Position]]:
        """Yields the batches from a position on, each with the position that follows it.

        Args:
            position: the first batch to yield.
            num_epochs: int or None. The batches end after this many epochs, counted from epoch 0,
                wherever `position` is; None: they never end.
        """
        for group in self._groups(position, num_epochs):
            for number in range(len(group.widths)):
                position = self.position_after(position, 1)
                yield numpy_batch(group, number), position

    def tf_dataset(
        self, position: Position = FIRST_BATCH, num_epochs: int | None = None
    ) -> "tf.data.Dataset":
        """Returns the batches of `numpy_batches` as a tf.data.Dataset of dicts.

        After n batches, the position is `position_after(position, n)`.
        """
        with needed():  # TensorFlow
            from seq2seq_memattn.data.tf_batches import batches_of

        return batches_of(lambda: self._groups(position, num_epochs), self._dtype)

    def fit_dataset(self, num_epochs: int | None = None) -> "tf.data.Dataset":
        """Returns the batches from the first one on, in the form that Keras's `fit` takes.

        Args:
            num_epochs: int or None. The batches end after this many epochs. The number of batches
                is counted when this method is called; a large corpus is read once per epoch for the
                count. None: the batches never end, so pass the property `num_batches` to `fit` as
                `steps_per_epoch`.

        Returns:
            A tf.data.Dataset of ({"source", "target_inputs"}, target_outputs).
        """
        with needed():  # TensorFlow
            from seq2seq_memattn.data.tf_batches import as_fitted

        num_batches = None if num_epochs is None else self._batches_of_epochs(num_epochs)
        return as_fitted(self.tf_dataset(num_epochs=num_epochs), num_batches)

    def tf_batches(self, position: Position) -> Iterator[dict[str, "tf.Tensor"]]:
        """Iterates over the batches of `tf_dataset` from a position on, without end.

        Errors in reading files are raised unchanged. TensorFlow would wrap them in its own error,
        with the traceback in the message.
        """
        with needed():  # TensorFlow
            from seq2seq_memattn.data.tf_batches import batches_of

        failures: list[Exception] = []

        def watched() -> Iterator[Group]:
            try:
                yield from self._groups(position, None)
            except (ValueError, OSError) as error:
                failures.append(error)
                raise

        try:
            yield from batches_of(watched, self._dtype)
        except Exception:
            if failures:
                raise failures[0] from None
            raise

    def _groups(self, position: Position, num_epochs: int | None) -> Iterator[Group]:
        """Yields the groups from a position on; the first begins with the position's batch."""
        end = math.inf if num_epochs is None else num_epochs * self._num_groups

        def groups(position: Position) -> Iterator[Group]:
            while position.epoch < end:
                yield self._group(position)
                position = Position(position.epoch + 1, 0)

        # tf.data must not read ahead: if one of its threads is in Python when the process ends, the
        # process hangs.
        return read_ahead(groups(position))

    def _group(self, position: Position) -> Group:
        """Reads a group; its batches before the position are left out."""
        number, first = position
        pairs = self.pairs if self._num_groups == 1 else self._read(number)
        order = self._make_order(pairs.lengths.max(axis=1))
        self._num_batches[number] = order.num_batches
        self.position_after(position, 0)  # raises if there is no such position
        full_size = order.full_size if self._fills else len
        group = make_group(pairs, order.epoch(number)[first:], full_size)
        return group._replace(widths=self._widths(group.widths))

    def _read(self, group: int) -> TokenPairs:
        """Reads the shards of a group, in file order: the pairs are shuffled later."""
        epoch, index = divmod(group, self._num_groups)
        order = np.arange(len(self._shards))
        if self._shuffle:
            # With two numbers in the key, the stream differs from those of `BucketBatches`.
            stream = np.random.SeedSequence(self._seed, spawn_key=(epoch, 0))
            order = np.random.default_rng(stream).permutation(order)
        shards = np.sort(np.array_split(order, self._num_groups)[index])
        return read_shards(self._directory, [self._shards[i] for i in shards], self._dtype)

    def _batches_of_epochs(self, num_epochs: int) -> int:
        return sum(map(self._count, range(num_epochs * self._num_groups)))

    def _count(self, group: int) -> int:
        """Returns the number of batches of a group."""
        if group not in self._num_batches:
            self._group(Position(group, 0))
        return self._num_batches[group]

"""Parallel text for a model: a split of shards of token ids, as padded batches.

However long the corpus, memory holds only the shards of two groups: the one that batches are made
of and the next, which is read meanwhile. An epoch is a seeded permutation of the shards, cut into
groups; the pairs of a group are shuffled and batched as `BucketBatches` does. A corpus of one group
is read once, and shuffled like the copy task.
"""

import functools
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np

from seq2seq_memattn.data.batching import (
    FIRST_BATCH,
    Batch,
    BucketBatches,
    Indices,
    Position,
    TokenIds,
    fill_rows,
    padded_length,
)
from seq2seq_memattn.data.pairs import TokenPairs, read_pairs
from seq2seq_memattn.data.records import id_dtype
from seq2seq_memattn.data.split_data import BUCKET_WIDTH, SplitData
from seq2seq_memattn.text.files import iterate_lines

GROUP_PAIRS = 500_000  # pairs shuffled together at most, but for a shard; about 100 MiB


class TextData(SplitData):
    """The pairs of one split, and the batches of a run over them.

    What a batch holds is said by `make_batch`. A `Position` counts groups where it says epoch:
    group g of epoch e is number e * groups + g, and its batches are counted from 0.

    Args:
        directory: a data directory with a manifest.
        split: "train", "valid" or the name of a test set.
        batch_size: pairs in a batch.
        bucket_width: width of a length bucket in tokens.
        seed: seed of the order.
        shuffle: False for evaluation: the shards in order, sorted by length within each group.
        pad_to_multiple: see `padded_length`; lengths are limited by the split's longest. Incomplete
            batches are filled, see `fill_rows`.
        batch_tokens: see `BucketBatches`.
        group_pairs: pairs that a group has at most, give or take a shard.

    Attributes:
        manifest: the directory's manifest.
        source_vocabulary, target_vocabulary: the vocabularies.

    Raises:
        ValueError: if the directory, the split, or later a shard is not as it should be.
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
        self._directory = Path(directory)
        super().__init__(self._directory, batch_size, pad_to_multiple, batch_tokens)
        self._split = self.manifest.split(split)
        if self._split.file_format != "tfrecord":
            raise ValueError(f"{directory}: expected shards, got {self._split.file_format}")
        self._shards = self._split.files_of("examples")
        self._dtype = id_dtype(self.source_vocabulary.size, self.target_vocabulary.size)
        wanted = -(-self._split.num_examples // group_pairs)
        self._num_groups = max(1, min(len(self._shards), wanted))
        self._bucket_width = bucket_width
        self._seed = seed
        self._shuffle = shuffle
        self._make_batches = functools.partial(
            BucketBatches,
            batch_size=batch_size,
            bucket_width=bucket_width,
            seed=seed,
            shuffle=shuffle,
            batch_tokens=batch_tokens,
        )
        self._last: tuple[list[int], TokenPairs] | None = None  # the shards read last
        self._num_batches: dict[int, int] = {}  # of the groups met so far

    def __len__(self) -> int:
        return self._split.num_examples

    @functools.cached_property
    def source(self) -> list[TokenIds]:
        """All sources without end token, in the order of the files; for a split that is small."""
        pairs = self._read(list(range(len(self._shards))))
        return [pairs.source(i) for i in range(len(pairs))]

    @functools.cached_property
    def target(self) -> list[TokenIds]:
        """All targets, as `source`."""
        pairs = self._read(list(range(len(self._shards))))
        return [pairs.target(i) for i in range(len(pairs))]

    def references(self, count: int) -> list[str]:
        """Returns the text of the first `count` targets as it was given, for scores."""
        file = self._split.files_of("target")[0]
        return list(islice(iterate_lines(self._directory / file.path), count))

    def advance(self, position: Position, num_batches: int) -> Position:
        """Returns the position `num_batches` batches later; ValueError if `position` is none."""
        group, batch = position
        if group < 0 or not 0 <= batch < self._count(group):
            raise ValueError(f"position: expected one of this data, got {group} and {batch}")
        batch += num_batches
        while batch and batch >= self._count(group):  # at 0, a group need not be read
            batch -= self._count(group)
            group += 1
        return Position(group, batch)

    def numpy_batches(
        self, position: Position = FIRST_BATCH, num_epochs: int | None = None
    ) -> Iterator[tuple[Batch, Position]]:
        group, first = self.advance(position, 0)
        end = math.inf if num_epochs is None else num_epochs * self._num_groups
        with ThreadPoolExecutor(1) as reader:
            coming = reader.submit(self._read, self._shards_of(group)) if group < end else None
            while coming:
                pairs = coming.result()
                following = self._shards_of(group + 1)
                coming = reader.submit(self._read, following) if group + 1 < end else None
                batches = self._batches(pairs)
                self._num_batches[group] = batches.num_batches
                for number, indices in enumerate(batches.epoch(group)[first:], first):
                    batch = self._batch(pairs, indices)
                    yield batch, self.advance(Position(group, number), 1)
                group, first = group + 1, 0

    def _shards_of(self, group: int) -> list[int]:
        """Returns the shards of a group, sorted: its order comes from shuffling the pairs."""
        epoch, index = divmod(group, self._num_groups)
        order = np.arange(len(self._shards))
        if self._shuffle:
            # Two numbers in the key: a stream of its own beside those of `BucketBatches`.
            stream = np.random.SeedSequence(self._seed, spawn_key=(epoch, 0))
            order = np.random.default_rng(stream).permutation(order)
        return sorted(np.array_split(order, self._num_groups)[index].tolist())

    def _read(self, shards: list[int]) -> TokenPairs:
        """Reads shards, unless they are those that were read last."""
        last = self._last
        if last is None or last[0] != shards:
            self._last = None  # let go before more is read
            files = [self._shards[i] for i in shards]
            last = self._last = (shards, read_pairs(self._directory, files, self._dtype))
        return last[1]

    def _batches(self, pairs: TokenPairs) -> BucketBatches:
        return self._make_batches(np.maximum(pairs.source_lengths, pairs.target_lengths))

    def _count(self, group: int) -> int:
        """Returns the number of batches of a group."""
        if group not in self._num_batches:
            batches = self._batches(self._read(self._shards_of(group)))
            self._num_batches[group] = batches.num_batches
        return self._num_batches[group]

    def _batch(self, pairs: TokenPairs, indices: Indices) -> Batch:
        sides = (
            (pairs.source_lengths, self._split.max_source_length),
            (pairs.target_lengths, self._split.max_target_length),
        )
        lengths = [
            padded_length(
                int(of_side[indices].max()), longest, self._bucket_width, self._pad_to_multiple
            )
            for of_side, longest in sides
        ]
        return fill_rows(pairs.batch(indices, *lengths), self._num_rows)

"""Batches in plain NumPy: the choice of examples for each batch, and padded arrays of token ids.

The batches of an epoch depend only on seed and epoch. A checkpoint therefore stores only a
`Position`, two ints, to resume the data. NumPy may change its generators between versions; a run
resumes bit for bit only with the NumPy version that it started with.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID

BATCH_KEYS = ("source", "target_inputs", "target_outputs")

Indices = npt.NDArray[np.int64]
TokenIds = npt.NDArray[np.int32]
Batch = dict[str, TokenIds]
Lengths = TypeVar("Lengths", int, Indices)


class Position(NamedTuple):
    """The next batch: batch number `batch` of epoch `epoch`, both counted from 0.

    If a split has several groups, `epoch` counts groups instead; see `SplitData`.
    """

    epoch: int = 0
    batch: int = 0


FIRST_BATCH = Position()


class BucketBatches:
    """Groups examples of similar length into batches, in a different order each epoch.

    With shuffling, each epoch permutes the examples at random, sorts them into length buckets, cuts
    each bucket into batches and shuffles the batches. The random order depends on the seed and the
    epoch. The last batch of a bucket may be incomplete; it is kept, so an epoch has every example
    once. Without shuffling (for evaluation), the examples are sorted by length and cut into batches
    without buckets, and every epoch has the same batches.

    Args:
        lengths: int [num_examples], each > 0. The longer of source and target, in tokens including
            the end token.
        batch_size: examples in a batch.
        bucket_width: width of a length bucket in tokens. Bucket i holds the examples with
            i * bucket_width + 1 .. (i + 1) * bucket_width tokens before the end token; bucket 0
            also holds empty examples. The end token is not counted. Otherwise, in data with at most
            20 tokens before the end token, the examples with 20 would be alone in a bucket, and a
            model would forget this length between two batches of the bucket.
        seed: seed of the run.
        shuffle: False for evaluation.
        batch_tokens: if not 0, it replaces `batch_size`. The number of examples in a batch is then
            this number of tokens divided by the longest length that the bucket allows (without
            shuffling: by the length of the longest example of all), rounded down, but at least 1.

    Raises:
        ValueError: if there are no examples, or an argument is out of its range.
    """

    def __init__(
        self,
        lengths: npt.NDArray[np.integer],
        batch_size: int,
        bucket_width: int,
        seed: int,
        shuffle: bool = True,
        batch_tokens: int = 0,
    ) -> None:
        lengths = np.asarray(lengths, np.int64)  # narrower or unsigned numbers could overflow
        if len(lengths) == 0 or np.min(lengths) < 1:
            raise ValueError("lengths: expected examples of at least one token, the end token")
        for name, value in (("batch_size", batch_size), ("bucket_width", bucket_width)):
            if value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        for name, value in (("seed", seed), ("batch_tokens", batch_tokens)):
            if value < 0:
                raise ValueError(f"{name}: expected at least 0, got {value}")
        self._seed = seed
        self._shuffle = shuffle
        # Examples that may share a batch are neighbours in the order of these keys.
        self._keys = lengths
        if shuffle:
            self._keys = np.maximum(self._keys - 2, 0) // bucket_width
            buckets, sizes = np.unique(self._keys, return_counts=True)
            longest = (buckets + 1) * bucket_width + 1
        else:
            longest, sizes = np.array([np.max(lengths)]), np.array([len(lengths)])
        batch_sizes = np.full(len(sizes), batch_size)
        if batch_tokens:
            batch_sizes = np.maximum(1, batch_tokens // longest)
        self._lengths, self._longest, self._batch_sizes = lengths, longest, batch_sizes
        self._cuts = _batch_starts(sizes, batch_sizes)

    @property
    def num_batches(self) -> int:
        """The number of batches in an epoch, including incomplete ones."""
        return len(self._cuts)

    def epoch(self, epoch: int) -> list[Indices]:
        """Returns the batches of one epoch; each is int64 [batch], the indices of its examples."""
        if not self._shuffle:
            return np.split(np.argsort(self._keys, kind="stable"), self._cuts[1:])
        stream = np.random.SeedSequence(self._seed, spawn_key=(epoch,))
        generator = np.random.default_rng(stream)
        order = generator.permutation(len(self._keys))
        order = order[np.argsort(self._keys[order], kind="stable")]
        batches = np.split(order, self._cuts[1:])
        return [batches[i] for i in generator.permutation(len(batches))]

    def full_size(self, batch: Indices) -> int:
        """The number of examples that a batch of `epoch` has if it is complete."""
        bucket = np.searchsorted(self._longest, self._lengths[batch[0]])
        return int(self._batch_sizes[bucket])


def pad_batch(
    sequences: Sequence[Sequence[int] | npt.NDArray[np.integer]], length: int
) -> npt.NDArray[np.int32]:
    """Stacks id lists into one array, padded with PAD_ID.

    Args:
        sequences: the id lists of a batch.
        length: the padded length in tokens; no sequence may be longer.

    Returns:
        int32 [batch, length].

    Raises:
        ValueError: if a sequence is longer than `length`.
    """
    batch = np.full([len(sequences), length], PAD_ID, np.int32)
    for row, sequence in zip(batch, sequences, strict=True):
        if len(sequence) > length:
            raise ValueError(f"length: expected at least {len(sequence)} tokens, got {length}")
        row[: len(sequence)] = sequence
    return batch


def make_batch(
    sources: Sequence[TokenIds],
    targets: Sequence[TokenIds],
    source_length: int | None = None,
    target_length: int | None = None,
) -> Batch:
    """Pads examples and adds their end and start tokens.

    Args:
        sources, targets: int32 arrays without start and end tokens.
        source_length, target_length: the padded lengths in tokens, end token included; None:
            the length of the longest example.

    Returns:
        A dict of int32 arrays, right padded with PAD_ID:
        source [batch, source_length]: the source and the end token (an empty source: only that).
        target_inputs [batch, target_length]: the start token and the target.
        target_outputs [batch, target_length]: the target and the end token.

    Raises:
        ValueError: if an example is longer than the padded length.
    """
    return as_batch(with_ends(sources, source_length), with_ends(targets, target_length))


def as_batch(source: TokenIds, target_outputs: TokenIds) -> Batch:
    """Makes a batch from padded ids that already have end tokens; see `make_batch`."""
    target_inputs = np.empty_like(target_outputs)
    target_inputs[:, 0] = START_ID
    before = target_outputs[:, :-1]
    target_inputs[:, 1:] = np.where(before == END_ID, PAD_ID, before)
    return {"source": source, "target_inputs": target_inputs, "target_outputs": target_outputs}


def fill_rows(batch: Batch, num_rows: int) -> Batch:
    """Fills a batch up to `num_rows` with rows that have no effect.

    Compilers then see few shapes. The source of an added row is only the end token; its target has
    no tokens.
    """
    missing = num_rows - len(batch["source"])
    if missing <= 0:
        return batch
    filled = {key: np.pad(batch[key], ((0, missing), (0, 0))) for key in BATCH_KEYS}
    filled["source"][-missing:, 0] = END_ID
    filled["target_inputs"][-missing:, 0] = START_ID
    return filled


def split_rows(batch: Any, num_parts: int) -> list[Batch]:
    """Splits a batch into parts of equal size: part i has rows i, i + num_parts, and so on.

    If the rows do not divide evenly, rows without effect are added; see `fill_rows`.

    Args:
        batch: a batch of `make_batch`, as arrays or as tensors.
        num_parts: int > 0.
    """
    if num_parts == 1:
        return [batch]
    rows = {name: np.asarray(ids) for name, ids in batch.items()}
    rows = fill_rows(rows, round_up(len(rows["source"]), num_parts))
    return [{name: ids[i::num_parts] for name, ids in rows.items()} for i in range(num_parts)]


def with_ends(sequences: Sequence[TokenIds], length: int | None = None) -> TokenIds:
    """Adds the end token to each id list and stacks them, padded to `length` or to the longest."""
    ended = [np.append(sequence, np.int32(END_ID)) for sequence in sequences]
    return pad_batch(ended, max(map(len, ended)) if length is None else length)


def round_up(length: Lengths, multiple: int) -> Lengths:
    """Returns the smallest multiple of `multiple` that is at least `length`."""
    return -(-length // multiple) * multiple


def padded_lengths(
    longest: Indices, limits: Indices, bucket_width: int, multiple: int | None
) -> Indices:
    """Returns the lengths in tokens to which the two sides of batches are padded.

    Args:
        longest: int64 [num_batches, 2]. The longest source and target of each batch.
        limits: int64 [2]. The longest source and target of the split.
        bucket_width: width of a length bucket.
        multiple: int or None. None: the padded lengths are `longest`. With an int, `longest` is
            rounded up to the boundary of the bucket, but at most to `limits`, and then to a
            multiple of this number. The result is few different lengths, so few compilations.
    """
    if multiple is None:
        return longest
    boundaries = round_up(np.maximum(longest - 1, 1), bucket_width) + 1
    return round_up(np.minimum(boundaries, limits), multiple)


def batch_spec() -> dict[str, Any]:
    """Shapes and dtypes of a batch for TensorFlow graphs: any number of rows, any lengths."""
    import tensorflow as tf

    return {key: tf.TensorSpec([None, None], tf.int32) for key in BATCH_KEYS}


def _batch_starts(sizes: npt.NDArray[np.integer], batch_sizes: npt.NDArray[np.integer]) -> Indices:
    """Returns where each batch begins, when buckets of these sizes are concatenated."""
    starts = [
        np.arange(end - size, end, batch_size)
        for size, end, batch_size in zip(sizes, np.cumsum(sizes), batch_sizes, strict=True)
    ]
    return np.concatenate(starts).astype(np.int64)

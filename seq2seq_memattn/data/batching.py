"""Which examples make up which batch, and padded batches of token ids, in plain NumPy.

An epoch's batches are a function of (seed, epoch) alone, so a `Position` of two ints is all that a
checkpoint keeps of the data. (NumPy may change its generators between versions; a run goes on bit
for bit with the version that it began with.)
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
    """The next batch to come: batch number `batch` of epoch `epoch`, both from 0."""

    epoch: int = 0
    batch: int = 0


FIRST_BATCH = Position()


class BucketBatches:
    """Cuts examples into batches of similar length, in another order each epoch.

    Shuffled, an epoch is a seeded permutation of the examples, dealt into length buckets, cut into
    batches within each bucket, and the order of the batches shuffled. A bucket's last batch may be
    incomplete and is kept: every example comes once an epoch. Not shuffled, for evaluation, the
    examples are sorted by length and cut into batches without regard to buckets, alike each epoch.

    Args:
        lengths: int [num_examples], each > 0. The longer of source and target, in tokens including
            the end token.
        batch_size: examples in a batch.
        bucket_width: width of a length bucket in tokens; bucket i holds those of
            i * bucket_width + 1 .. (i + 1) * bucket_width tokens before the end token, the first
            the end token alone as well. With the end token counted, sequences of at most L = 20
            would leave a bucket to those of 20 alone, which a model forgets from one to the next.
        seed: seed of the run.
        shuffle: False for evaluation.
        batch_tokens: if not 0, a batch has, instead of `batch_size`, as many examples as fill at
            most this number of tokens when each is as long as its bucket allows (unshuffled: as
            the longest of all); at least one.

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
        # Sorted by these, examples that may share a batch stand side by side.
        self._keys = np.asarray(lengths)
        if shuffle:
            self._keys = np.maximum(self._keys - 2, 0) // bucket_width
            buckets, sizes = np.unique(self._keys, return_counts=True)
            longest = (buckets + 1) * bucket_width + 1
        else:
            longest, sizes = np.array([np.max(lengths)]), np.array([len(lengths)])
        batch_sizes = np.full(len(sizes), batch_size)
        if batch_tokens:
            batch_sizes = np.maximum(1, batch_tokens // longest)
        self._cuts = _batch_starts(sizes, batch_sizes)

    @property
    def num_batches(self) -> int:
        """Batches of an epoch, the incomplete ones included."""
        return len(self._cuts)

    def epoch(self, epoch: int) -> list[Indices]:
        """Returns the batches of one epoch: int64 [batch], the indices of a batch's examples."""
        if not self._shuffle:
            return np.split(np.argsort(self._keys, kind="stable"), self._cuts[1:])
        stream = np.random.SeedSequence(self._seed, spawn_key=(epoch,))
        generator = np.random.default_rng(stream)
        order = generator.permutation(len(self._keys))
        order = order[np.argsort(self._keys[order], kind="stable")]
        batches = np.split(order, self._cuts[1:])
        return [batches[i] for i in generator.permutation(len(batches))]


def pad_batch(
    sequences: Sequence[Sequence[int] | npt.NDArray[np.integer]], length: int
) -> npt.NDArray[np.int32]:
    """Stacks id lists, filled up with PAD_ID.

    Args:
        sequences: the id lists of a batch.
        length: the padded length in tokens, at least that of the longest.

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
        source_length, target_length: the padded lengths in tokens, end token included; None takes
            the longest.

    Returns:
        A dict of int32 arrays, right padded with PAD_ID:
        source [batch, source_length]: the source and the end token (of an empty example alone).
        target_inputs [batch, target_length]: the start token and the target.
        target_outputs [batch, target_length]: the target and the end token.

    Raises:
        ValueError: if an example is longer than it may be.
    """
    return as_batch(with_ends(sources, source_length), with_ends(targets, target_length))


def as_batch(source: TokenIds, target_outputs: TokenIds) -> Batch:
    """Makes a batch of padded ids that have their end tokens; see `make_batch`."""
    target_inputs = np.empty_like(target_outputs)
    target_inputs[:, 0] = START_ID
    before = target_outputs[:, :-1]
    target_inputs[:, 1:] = np.where(before == END_ID, PAD_ID, before)
    return {"source": source, "target_inputs": target_inputs, "target_outputs": target_outputs}


def fill_rows(batch: Batch, num_rows: int) -> Batch:
    """Adds rows that train nothing, up to `num_rows`: few shapes, for compilers.

    Their source is the end token alone, their target has no tokens.
    """
    missing = num_rows - len(batch["source"])
    if missing <= 0:
        return batch
    filled = {key: np.pad(batch[key], ((0, missing), (0, 0))) for key in BATCH_KEYS}
    filled["source"][-missing:, 0] = END_ID
    filled["target_inputs"][-missing:, 0] = START_ID
    return filled


def split_rows(batch: Any, num_parts: int) -> list[Batch]:
    """Cuts a batch into parts of as many rows each: part i has rows i, i + num_parts, ...

    Where the rows do not suffice, there are some that train nothing.

    Args:
        batch: of `make_batch`, or the same as tensors.
        num_parts: int > 0.
    """
    if num_parts == 1:
        return [batch]
    rows = {name: np.asarray(ids) for name, ids in batch.items()}
    rows = fill_rows(rows, round_up(len(rows["source"]), num_parts))
    return [{name: ids[i::num_parts] for name, ids in rows.items()} for i in range(num_parts)]


def with_ends(sequences: Sequence[TokenIds], length: int | None = None) -> TokenIds:
    """Stacks id lists, each with its end token, padded to `length` or to the longest."""
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
        multiple: None for `longest` itself; else lengths are rounded up to the bucket's boundary,
            at most to the limits, and then to a multiple of this: few lengths, for compilers.
    """
    if multiple is None:
        return longest
    boundaries = round_up(np.maximum(longest - 1, 1), bucket_width) + 1
    return round_up(np.minimum(boundaries, limits), multiple)


def batch_spec() -> dict[str, Any]:
    """Shapes and dtypes of a batch, as TensorFlow's graphs take it: any rows, any widths."""
    import tensorflow as tf

    return {key: tf.TensorSpec([None, None], tf.int32) for key in BATCH_KEYS}


def _batch_starts(sizes: npt.NDArray[np.integer], batch_sizes: npt.NDArray[np.integer]) -> Indices:
    """Returns where batches begin when buckets of these sizes lie one after the other."""
    starts = [
        np.arange(end - size, end, batch_size)
        for size, end, batch_size in zip(sizes, np.cumsum(sizes), batch_sizes, strict=True)
    ]
    return np.concatenate(starts).astype(np.int64)

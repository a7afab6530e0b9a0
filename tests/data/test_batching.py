from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from seq2seq_memattn.data.batching import (
    BATCH_KEYS,
    BucketBatches,
    make_batch,
    pad_batch,
    padded_lengths,
    round_up,
    split_rows,
)
from seq2seq_memattn.vocabulary import END_ID, PAD_ID

LENGTHS = np.random.default_rng(5).integers(1, 22, size=207)
BATCH_SIZE = 11
BUCKET_WIDTH = 7  # buckets of 0-7, 8-14 and 15-20 tokens, without the end token
SENTENCES = [np.full([length], 5, np.int32) for length in (3, 1, 0, 4, 2)]
BATCH = make_batch(SENTENCES, SENTENCES)


def batches_of(seed: int = 3, shuffle: bool = True) -> BucketBatches:
    return BucketBatches(LENGTHS, BATCH_SIZE, BUCKET_WIDTH, seed, shuffle)


def bucket_of(lengths: Any) -> Any:
    return np.maximum(lengths - 2, 0) // BUCKET_WIDTH


def as_lists(batches: list[npt.NDArray[np.int64]]) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


@pytest.mark.parametrize("shuffle", [True, False])
def test_every_example_comes_once_an_epoch(shuffle: bool) -> None:
    batches = batches_of(shuffle=shuffle)
    for epoch in range(3):
        indices = np.concatenate(batches.epoch(epoch))
        assert sorted(indices.tolist()) == list(range(len(LENGTHS)))


def test_a_batch_stays_within_one_bucket() -> None:
    for indices in batches_of().epoch(0):
        assert len(set(bucket_of(LENGTHS[indices]))) == 1


def test_bucket_boundaries_belong_to_the_lower_bucket() -> None:
    batches = BucketBatches(np.array([1, 2, 11, 12, 21, 22]), 5, 10, seed=0)
    assert sorted(sorted(batch.tolist()) for batch in batches.epoch(0)) == [[0, 1, 2], [3, 4], [5]]


def test_incomplete_batches_are_kept_one_per_bucket_at_most() -> None:
    batches = batches_of()
    sizes = [len(indices) for indices in batches.epoch(1)]
    assert len(sizes) == batches.num_batches
    assert sum(size < BATCH_SIZE for size in sizes) <= 3
    assert max(sizes) == BATCH_SIZE


def test_an_epoch_is_a_function_of_seed_and_epoch() -> None:
    assert as_lists(batches_of().epoch(4)) == as_lists(batches_of().epoch(4))
    assert as_lists(batches_of().epoch(4)) != as_lists(batches_of().epoch(5))
    assert as_lists(batches_of(seed=3).epoch(4)) != as_lists(batches_of(seed=4).epoch(4))


def test_examples_meet_other_examples_in_the_next_epoch() -> None:
    batches = batches_of()
    first, second = ({frozenset(b.tolist()) for b in batches.epoch(e)} for e in range(2))
    assert not first & second


def test_the_order_of_batches_is_shuffled() -> None:
    buckets = [bucket_of(LENGTHS[indices[0]]) for indices in batches_of().epoch(0)]
    assert buckets != sorted(buckets)


def test_evaluation_sorts_by_length_and_has_one_incomplete_batch() -> None:
    batches = batches_of(shuffle=False)
    indices = np.concatenate(batches.epoch(0))
    assert (np.diff(LENGTHS[indices]) >= 0).all()
    assert [len(batch) for batch in batches.epoch(0)] == [11] * 18 + [9]
    assert as_lists(batches.epoch(0)) == as_lists(batches.epoch(9))


def epoch_by_hand(seed: int, epoch: int) -> list[list[int]]:
    """The order of an epoch, in plain Python except for the random numbers."""
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(epoch,)))
    buckets: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for index in generator.permutation(len(LENGTHS)):
        buckets[max(LENGTHS[index] - 2, 0) // BUCKET_WIDTH].append(int(index))
    batches = [
        bucket[first : first + BATCH_SIZE]
        for _, bucket in sorted(buckets.items())
        for first in range(0, len(bucket), BATCH_SIZE)
    ]
    return [batches[i] for i in generator.permutation(len(batches))]


@pytest.mark.parametrize("epoch", [0, 7])
def test_the_order_is_that_of_plain_python(epoch: int) -> None:
    assert as_lists(batches_of(seed=3).epoch(epoch)) == epoch_by_hand(3, epoch)


@pytest.mark.parametrize("shuffle", [True, False])
def test_batches_by_tokens_never_exceed_them_padded(shuffle: bool) -> None:
    batches = BucketBatches(LENGTHS, BATCH_SIZE, BUCKET_WIDTH, 0, shuffle, batch_tokens=100)
    epoch = batches.epoch(0)
    assert sorted(np.concatenate(epoch).tolist()) == list(range(len(LENGTHS)))
    assert all(len(indices) * LENGTHS[indices].max() <= 100 for indices in epoch)
    if shuffle:  # a full batch has as many examples as fit at its bucket's longest length
        fullest = {}
        for indices in epoch:
            bucket = int(bucket_of(LENGTHS[indices].max()))
            fullest[bucket] = max(fullest.get(bucket, 0), len(indices))
        longest = {bucket: (bucket + 1) * BUCKET_WIDTH + 1 for bucket in fullest}
        assert all(size == 100 // longest[bucket] for bucket, size in fullest.items())


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("batch_tokens", [0, 100])
def test_the_size_of_a_complete_batch_is_that_of_the_others_in_its_bucket(
    batch_tokens: int, shuffle: bool
) -> None:
    batches = BucketBatches(LENGTHS, BATCH_SIZE, BUCKET_WIDTH, 0, shuffle, batch_tokens)
    most: dict[int, int] = {}
    for batch in batches.epoch(0):
        bucket = int(bucket_of(LENGTHS[batch[0]])) if shuffle else 0
        most[bucket] = max(most.get(bucket, 0), len(batch))
    for batch in batches.epoch(1):
        bucket = int(bucket_of(LENGTHS[batch[0]])) if shuffle else 0
        assert batches.full_size(batch) == most[bucket]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64])
def test_lengths_may_have_any_type_of_integers(dtype: Any) -> None:
    found, expected = (
        BucketBatches(np.array([1, 1, 5, 6, 7, 200], kind), 4, 10, 0, batch_tokens=40)
        for kind in (dtype, np.int64)
    )
    assert as_lists(found.epoch(0)) == as_lists(expected.epoch(0))


def test_an_example_longer_than_the_tokens_of_a_batch_is_a_batch() -> None:
    batches = BucketBatches(np.array([3, 50, 60]), 9, 10, 0, batch_tokens=20)
    assert sorted(as_lists(batches.epoch(0))) == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("lengths", "batch_size", "bucket_width", "seed", "message"),
    [
        ([], 1, 1, 0, "lengths"),
        ([1, 0], 1, 1, 0, "lengths"),
        ([1], 0, 1, 0, "batch_size: expected at least 1, got 0"),
        ([1], 1, 0, 0, "bucket_width: expected at least 1, got 0"),
        ([1], 1, 1, -1, "seed: expected at least 0, got -1"),
    ],
)
def test_arguments_out_of_range_are_refused(
    lengths: list[int], batch_size: int, bucket_width: int, seed: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        BucketBatches(np.array(lengths, np.int64), batch_size, bucket_width, seed)


def test_padding_fills_up_with_the_pad_id() -> None:
    batch = pad_batch([[5, 6], [], np.array([7, 8, 9])], 4)
    assert batch.dtype == np.int32
    p = PAD_ID
    assert batch.tolist() == [[5, 6, p, p], [p, p, p, p], [7, 8, 9, p]]


def test_a_sequence_longer_than_the_padded_length_is_refused() -> None:
    with pytest.raises(ValueError, match="length: expected at least 3 tokens, got 2"):
        pad_batch([[1], [1, 2, 3]], 2)


def test_rounding_up() -> None:
    assert [round_up(n, 4) for n in (1, 3, 4, 5, 8)] == [4, 4, 4, 8, 8]


def test_lengths_are_rounded_to_buckets_limits_and_multiples() -> None:
    longest = np.array([[1, 5], [6, 12], [11, 11]])
    limits = np.array([11, 12])
    assert padded_lengths(longest, limits, 4, None) is longest
    assert padded_lengths(longest, limits, 4, 1).tolist() == [[5, 5], [9, 12], [11, 12]]
    assert padded_lengths(longest, limits, 4, 5).tolist() == [[5, 5], [10, 15], [15, 15]]


def test_one_part_is_the_batch() -> None:
    assert split_rows(BATCH, 1) == [BATCH]


def test_parts_have_each_row_once_and_equal_sizes() -> None:
    for num_parts in (2, 3, 5, 8):
        parts = split_rows(BATCH, num_parts)
        assert len(parts) == num_parts
        (size,) = {len(part["source"]) for part in parts}
        assert size == -(-5 // num_parts)
        for name in BATCH_KEYS:
            joined = np.stack([part[name] for part in parts], axis=1).reshape(size * num_parts, -1)
            np.testing.assert_array_equal(joined[:5], BATCH[name])
            added = joined[5:]
            if name == "target_outputs":
                assert (added == PAD_ID).all()  # padding does not count
            if name == "source":
                assert (added[:, 0] == END_ID).all()
                assert (added[:, 1:] == PAD_ID).all()


def test_tensors_are_cut_as_arrays_are() -> None:
    import tensorflow as tf

    tensors = {name: tf.constant(ids) for name, ids in BATCH.items()}
    for ours, theirs in zip(split_rows(tensors, 2), split_rows(BATCH, 2), strict=True):
        for name in BATCH_KEYS:
            np.testing.assert_array_equal(ours[name], theirs[name])

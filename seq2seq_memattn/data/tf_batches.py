"""Batches of a group as a tf.data graph: it calls Python once per group, not once per batch."""

from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from seq2seq_memattn.data.batching import BATCH_KEYS
from seq2seq_memattn.data.groups import Group
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID

PARALLEL_CALLS = 2  # batches made at a time
BATCHES_AHEAD = 4


def batches_of(
    groups: Callable[[], Iterator[Group]], dtype: np.dtype[np.integer]
) -> tf.data.Dataset:
    """Returns the batches of groups as a tf.data.Dataset of dicts, see `batching.make_batch`.

    Args:
        groups: returns a new iterator over the groups; called at the start of each iteration over
            the dataset.
        dtype: dtype of the groups' tokens.
    """

    def batches(*fields: tf.Tensor) -> tf.data.Dataset:
        group = Group(*fields)
        numbers = tf.data.Dataset.range(tf.shape(group.widths, tf.int64)[0])
        return numbers.map(lambda number: _batch(group, number), num_parallel_calls=PARALLEL_CALLS)

    int64 = tf.TensorSpec([None], tf.int64)
    spec = (tf.TensorSpec([None], dtype), int64, int64, int64, tf.TensorSpec([None, 2], tf.int64))
    dataset = tf.data.Dataset.from_generator(lambda: map(tuple, groups()), output_signature=spec)
    # Nothing here needs autotuning, and an iterator would wait up to a minute for its tuner to end.
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.flat_map(batches).prefetch(BATCHES_AHEAD).with_options(options)


def as_fitted(dataset: tf.data.Dataset, num_batches: int | None) -> tf.data.Dataset:
    """Returns the batches as Keras's `fit` takes them, with their number (`fit` warns without it).

    Args:
        dataset: dataset of dicts, see `batching.make_batch`.
        num_batches: number of batches in the dataset; None if it has no end.
    """
    *inputs, outputs = BATCH_KEYS
    pairs = dataset.map(lambda batch: ({name: batch[name] for name in inputs}, batch[outputs]))
    number = tf.data.INFINITE_CARDINALITY if num_batches is None else num_batches
    return pairs.apply(tf.data.experimental.assert_cardinality(number))


def _batch(group: Group, number: tf.Tensor) -> dict[str, tf.Tensor]:
    """Makes the batch that `numpy_batch` makes, in the graph."""
    rows = group.rows[group.splits[number] : group.splits[number + 1]]
    widths = group.widths[number]
    source = _padded(group, 2 * rows, widths[0])
    target_outputs = _padded(group, 2 * rows + 1, widths[1])
    before = target_outputs[:, :-1]
    before = tf.where(before == END_ID, PAD_ID, before)
    target_inputs = tf.pad(before, [[0, 0], [1, 0]], constant_values=START_ID)
    return dict(zip(BATCH_KEYS, (source, target_inputs, target_outputs), strict=True))


def _padded(group: Group, sequences: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Returns sequences by their indices in `offsets`, padded; int32 [batch, width].

    `tf.gather` on a RaggedTensor would be slower: it checks the group's offsets for every batch.
    """
    starts = tf.gather(group.offsets, sequences)[:, None]
    places = starts + tf.range(width)  # [batch, width]
    is_token = places < tf.gather(group.offsets, sequences + 1)[:, None]
    padding = tf.size(group.tokens, tf.int64) - 1
    return tf.cast(tf.gather(group.tokens, tf.where(is_token, places, padding)), tf.int32)

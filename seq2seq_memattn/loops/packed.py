"""A batch of sequences in a TensorFlow graph: each step has only the unfinished rows."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


class PackedSteps:
    """The steps of a batch: rows in order of decreasing length, time-major, without padding.

    Step t has the `sizes[t]` longest rows, so the rows of a step are the first rows of the step
    before. The methods are those of `padded.PaddedSteps`, but the first axis of flat arrays is
    `packed`, the unfinished rows of all steps, instead of step * batch.

    Args:
        lengths: int32 [batch]. Real steps of each row.
        num_steps: int or scalar int32. Steps of the loop (the padded length).
    """

    def __init__(self, lengths: Any, num_steps: Any) -> None:
        lengths = tf.convert_to_tensor(lengths, tf.int32)
        self.num_steps = num_steps
        self.batch = tf.shape(lengths)[0]
        self.order = tf.argsort(lengths, direction="DESCENDING", stable=True)
        self.sorted_lengths = tf.gather(lengths, self.order)
        real = tf.sequence_mask(self.sorted_lengths, num_steps)  # [batch, step]
        sizes = tf.reduce_sum(tf.cast(real, tf.int32), axis=0)
        longest = tf.math.count_nonzero(sizes, dtype=tf.int32)  # no later step holds rows
        self.sizes = sizes[: tf.maximum(longest, 1)]  # at least one, since arrays cannot be empty
        self.end = tf.size(self.sizes)
        place = tf.cast(tf.where(tf.transpose(real)), tf.int32)  # [packed, (step, rank)]
        step, rank = place[:, 0], place[:, 1]
        self.total = tf.shape(place)[0]
        row = tf.gather(self.order, rank) * num_steps
        self._forward = row + step
        self._backward = row + tf.gather(self.sorted_lengths, rank) - 1 - step
        self._sorted = rank * num_steps + step
        self._offsets = tf.cumsum(self.sizes, exclusive=True)

    def pack(self, x: Any, reverse: bool = False) -> Any:
        """[batch, step, ...] -> [packed, ...]; `reverse` reverses the real steps."""
        index = self._backward if reverse else self._forward
        flat = tf.reshape(x, tf.concat([[-1], tf.shape(x)[2:]], 0))
        if not x.dtype.is_floating:
            return tf.gather(flat, index)
        return _move(flat, lambda v: tf.gather(v, index), lambda g: self._spread(g, index))

    def unpack(self, y: Any, reverse: bool = False) -> Any:
        """[packed, n] -> [batch, step, n], 0 on padding; undoes `pack`."""
        return self._unpack(y, self._backward if reverse else self._forward)

    def by_row(self, y: Any) -> Any:
        """As `unpack`, with the rows in the loop's order."""
        return self._unpack(y, self._sorted)

    def last(self, y: Any) -> Any:
        """Each sequence's row at its last real step: [packed, n] -> [batch, n].

        0 for a sequence without real steps.
        """
        step = tf.maximum(self.sorted_lengths - 1, 0)
        index = tf.gather(self._offsets, step) + tf.range(self.batch)
        real = self.sorted_lengths > 0
        inverse = tf.argsort(self.order)
        y = tf.pad(y, [[0, tf.cast(self.total == 0, tf.int32)], [0, 0]])  # one row to gather from
        last = tf.gather(y, tf.gather(tf.where(real, index, 0), inverse))
        return last * tf.cast(tf.gather(real, inverse), y.dtype)[:, None]

    def sort(self, x: Any) -> Any:
        """Brings [batch, ...] into the order of the loop's rows."""
        if not x.dtype.is_floating:
            return tf.gather(x, self.order)
        inverse = tf.argsort(self.order)
        return _move(x, lambda v: tf.gather(v, self.order), lambda g: tf.gather(g, inverse))

    def read_array(self, x: Any) -> tf.TensorArray:
        """An array with an entry for each step: the rows of the step in [packed, n]."""
        return self.write_array(x.shape[-1], x.dtype).split(x, self.sizes)

    def write_array(self, units: int | None, dtype: Any) -> tf.TensorArray:
        """An empty array for the results of the steps, [rows, units] each."""
        return tf.TensorArray(dtype, self.end, infer_shape=False, element_shape=[None, units])

    def join(self, array: tf.TensorArray, units: int | None) -> Any:
        """The results of all steps: [packed, units]."""
        return tf.ensure_shape(array.concat(), [None, units])

    def crop_at(self, t: Any) -> Callable[[Any], Any]:
        """A function that cuts [batch, ...] in the loop's order down to the rows of step `t`."""
        size = self.sizes[t]

        def crop(x: Any) -> Any:
            # The gradient of `tf.slice` is a single padding; that of x[:size] is slower.
            rest = [-1] * (len(x.shape) - 1)
            cropped = tf.slice(x, [0] * len(x.shape), [size, *rest])
            cropped.set_shape([None, *x.shape[1:]])
            return cropped

        return crop

    def carry_shape(self, x: Any) -> tf.TensorShape:
        """The shape that a loop may assume for an array [batch, ...] that it carries."""
        return tf.TensorShape([None, *x.shape[1:]])

    def _unpack(self, y: Any, index: Any) -> Any:
        spread = _move(y, lambda v: self._spread(v, index), lambda g: tf.gather(g, index))
        units = tf.shape(y)[-1] if y.shape[-1] is None else y.shape[-1]
        return tf.reshape(spread, [self.batch, self.num_steps, units])

    def _spread(self, y: Any, index: Any) -> Any:
        """Writes y[i] to row index[i] of [batch * step, ...], zeros elsewhere."""
        shape = tf.concat([[self.batch * self.num_steps], tf.shape(y)[1:]], 0)
        return tf.scatter_nd(index[:, None], y, shape)


def _move(x: Any, forward: Callable[[Any], Any], backward: Callable[[Any], Any]) -> Any:
    """Moves rows. The gradient moves them back; TensorFlow's own, which sums rows, is slower."""

    @tf.custom_gradient
    def moved(value: Any) -> tuple[Any, Callable[[Any], Any]]:
        return forward(value), backward

    return moved(x)

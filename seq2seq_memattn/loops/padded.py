"""A batch of sequences in a loop over steps: every step has all rows.

A loop takes its inputs time-major and flat, [step * batch, n]. `PaddedSteps` keeps padded rows, so
every shape is known in advance, as XLA and JAX require. `packed.PackedSteps`, for TensorFlow graphs
without XLA, has the same methods and leaves out finished rows.
"""

from collections.abc import Callable
from typing import Any

from keras import ops

from seq2seq_memattn.compute.rows import reverse_prefix


class PaddedSteps:
    """The steps of a batch: every row is in every step; padding is computed and then zeroed.

    Args:
        lengths: int32 [batch]. Real steps of each row.
        num_steps: int or scalar int32. Steps of the loop (the padded length).
    """

    def __init__(self, lengths: Any, num_steps: Any) -> None:
        self.lengths = lengths
        self.num_steps = num_steps
        self.batch = ops.shape(lengths)[0]
        self.total = num_steps * self.batch

    def pack(self, x: Any, reverse: bool = False) -> Any:
        """[batch, step, ...] -> [step * batch, ...]; `reverse` reverses the real steps."""
        if reverse:
            x = self._reversed(x)
        x = ops.swapaxes(x, 0, 1)
        return ops.reshape(x, (-1, *x.shape[2:]))

    def unpack(self, y: Any, reverse: bool = False) -> Any:
        """[step * batch, n] -> [batch, step, n], 0 on padding; undoes `pack`."""
        x = self.by_row(y)
        if reverse:
            x = self._reversed(x)
        return x * ops.cast(self._real(), x.dtype)[:, :, None]

    def by_row(self, y: Any) -> Any:
        """As `unpack`, with the rows in the loop's order and padding as it is."""
        return ops.swapaxes(self.by_step(y), 0, 1)

    def by_step(self, y: Any) -> Any:
        """[step * batch, n] -> [step, batch, n]."""
        return ops.reshape(y, (self.num_steps, self.batch, ops.shape(y)[-1]))

    def last(self, y: Any) -> Any:
        """Each sequence's row at its last real step: [step * batch, n] -> [batch, n].

        0 for a sequence without real steps.
        """
        index = ops.maximum(self.lengths - 1, 0) * self.batch + ops.arange(
            self.batch, dtype="int32"
        )
        return ops.take(y, index, axis=0) * ops.cast(self.lengths > 0, y.dtype)[:, None]

    def sort(self, x: Any) -> Any:
        """Brings [batch, ...] into the order of the loop's rows."""
        return x

    # What follows is for the reads and writes of TensorFlow's loop; XLA must know all shapes ahead.

    @property
    def end(self) -> Any:
        """The number of steps that a loop takes. The rest is padding, which stays 0."""
        return ops.max(self.lengths, initial=0)

    def read_array(self, x: Any) -> Any:
        """A `tf.TensorArray` with an entry [batch, n] for each step, from [step * batch, n]."""
        return self.write_array(x.shape[-1], x.dtype).unstack(self.by_step(x))

    def write_array(self, units: int | None, dtype: Any) -> Any:
        """An empty array for the results of the steps, [batch, units] each."""
        import tensorflow as tf

        shape = [tf.get_static_value(tf.convert_to_tensor(self.batch)), units]
        return tf.TensorArray(dtype, self.num_steps, element_shape=shape)

    def join(self, array: Any, units: int | None) -> Any:
        """The results of all steps: [step * batch, units]."""
        return ops.reshape(array.stack(), (self.total, -1 if units is None else units))

    def crop_at(self, t: Any) -> Callable[[Any], Any]:
        """A function that cuts [batch, ...] in the loop's order down to the rows of step `t`."""
        del t
        return lambda x: x

    def carry_shape(self, x: Any) -> Any:
        """The shape that a loop may assume for an array [batch, ...] that it carries."""
        return x.shape

    def _real(self) -> Any:
        return self._steps() < self.lengths[:, None]

    def _reversed(self, x: Any) -> Any:
        return reverse_prefix(x, self._steps(), self.lengths[:, None])

    def _steps(self) -> Any:
        return ops.arange(self.num_steps, dtype="int32")[None, :]

"""How a loop over steps sees a batch of sequences: all rows at every step.

A loop takes its inputs time-major and flat, [step * batch, n]. `PaddedSteps` keeps padded rows,
so every shape is known ahead (XLA, JAX). `packed_steps.PackedSteps` has the same methods and
leaves finished rows out (TensorFlow graphs).
"""

from typing import Any

from keras import ops

from seq2seq_memattn.compute.rows import turn


class PaddedSteps:
    """Every row takes part in every step; padding is computed and then zeroed.

    Args:
        lengths: int32 [batch]. Real steps of each row.
        num_steps: int or scalar int32. Steps of the loop (the padded length).
    """

    def __init__(self, lengths: Any, num_steps: Any) -> None:
        self.lengths = lengths
        self.num_steps = num_steps
        self.batch = ops.shape(lengths)[0]

    def pack(self, x: Any, reverse: bool = False) -> Any:
        """[batch, step, ...] -> [step * batch, ...]; `reverse` turns the real steps around."""
        if reverse:
            x = self._turn(x)
        x = ops.swapaxes(x, 0, 1)
        return ops.reshape(x, (-1, *x.shape[2:]))

    def unpack(self, y: Any, reverse: bool = False) -> Any:
        """[step * batch, n] -> [batch, step, n], 0 on padding; undoes `pack`."""
        x = ops.reshape(y, (self.num_steps, self.batch, y.shape[-1]))
        x = ops.swapaxes(x, 0, 1)
        if reverse:
            x = self._turn(x)
        return x * ops.cast(self._real(), x.dtype)[:, :, None]

    def last(self, y: Any) -> Any:
        """Each sequence's row at its last real step, 0 without: [step * batch, n] -> [batch, n]."""
        index = ops.maximum(self.lengths - 1, 0) * self.batch + ops.arange(self.batch)
        return ops.take(y, index, axis=0) * ops.cast(self.lengths > 0, y.dtype)[:, None]

    def sort(self, x: Any) -> Any:
        """Brings [batch, ...] into the order of the loop's rows."""
        return x

    def _real(self) -> Any:
        return ops.arange(self.num_steps)[None, :] < self.lengths[:, None]

    def _turn(self, x: Any) -> Any:
        return turn(x, ops.arange(self.num_steps)[None, :], self.lengths[:, None])

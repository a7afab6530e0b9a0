"""Rows picked or turned around, each batch entry by an index of its own."""

from typing import Any

from keras import ops


def pick(array: Any, index: Any) -> Any:
    """[batch, m, ...], [batch, n] -> [batch, n, ...].

    As `take_along_axis`, which takes an array of indices as large as its result and on TensorFlow
    some 35 operations.
    """
    batch, width, *rest = ops.shape(array)
    rows = ops.reshape(ops.arange(batch, dtype="int32")[:, None] * width + index, (-1,))
    flat = ops.reshape(array, (batch * width, *rest))
    return ops.reshape(ops.take(flat, rows, axis=0), (batch, ops.shape(index)[1], *rest))


def turn(x: Any, positions: Any, lengths: Any) -> Any:
    """The first entries of each batch entry in reverse order, the others where they are.

    Args:
        x: [batch, n] or [batch, n, units].
        positions: int32 [1 or batch, n]. 0 to n - 1.
        lengths: int32 [batch, 1]. How many of the first ones.
    """
    index = ops.where(positions < lengths, lengths - 1 - positions, positions)
    return ops.take_along_axis(x, index[:, :, None] if len(x.shape) == 3 else index, axis=1)

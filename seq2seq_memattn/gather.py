"""Rows picked by an index of their own for each batch entry."""

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

"""Rows looked up in a table, gathered, reversed or mapped."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops


def embed(table: Any, ids: Any) -> Any:
    """[vocab_size, n], int32 [rows] -> [rows, n], for tables with few rows.

    TensorFlow sums the gradients of a row one by one; here one product with the one-hot ids does.
    """
    if keras.backend.backend() != "tensorflow":
        return ops.take(table, ids, axis=0)
    import tensorflow as tf

    @tf.custom_gradient
    def embedded(table: Any) -> tuple[Any, Callable[[Any], Any]]:
        def gradient(upstream: Any) -> Any:
            chosen = tf.one_hot(ids, table.shape[0], dtype=upstream.dtype)
            return tf.matmul(chosen, upstream, transpose_a=True)

        return tf.gather(table, ids), gradient

    return embedded(table)


def batch_gather(array: Any, index: Any) -> Any:
    """[batch, m, ...], [batch, n] -> [batch, n, ...].

    As `take_along_axis`, which takes an array of indices as large as its result and on TensorFlow
    some 35 operations.
    """
    if array.shape[1] == index.shape[1] == 1:  # there is nothing to choose
        return array
    batch, width, *rest = ops.shape(array)
    rows = ops.reshape(ops.arange(batch, dtype="int32")[:, None] * width + index, (-1,))
    flat = ops.reshape(array, (batch * width, *rest))
    return ops.reshape(ops.take(flat, rows, axis=0), (batch, ops.shape(index)[1], *rest))


def reverse_prefix(x: Any, positions: Any, lengths: Any) -> Any:
    """The first entries of each batch entry in reverse order, the others where they are.

    Args:
        x: [batch, n] or [batch, n, units].
        positions: int32 [1 or batch, n]. 0 to n - 1.
        lengths: int32 [batch, 1]. How many of the first ones.
    """
    index = ops.where(positions < lengths, lengths - 1 - positions, positions)
    return ops.take_along_axis(x, index[:, :, None] if len(x.shape) == 3 else index, axis=1)


def on_rows(function: Callable[[Any], Any], x: Any) -> Any:
    """A function of matrices [rows, n] -> [rows, m], applied to x: [..., n] -> [..., m].

    TensorFlow computes a product of more than two axes by `tensordot`. XLA cannot compile the
    gradient of that inside a loop whose sizes are unknown when it is traced.
    """
    result = function(ops.reshape(x, (-1, x.shape[-1])))
    return ops.reshape(result, (*ops.shape(x)[:-1], result.shape[-1]))

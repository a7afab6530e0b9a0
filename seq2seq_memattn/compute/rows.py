"""Operations on rows of arrays: look up, gather, reverse, map."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from seq2seq_memattn.compute.precision import at_least_float32


def embed(table: Any, ids: Any) -> Any:
    """Looks up rows of a small table: [vocab_size, n], int32 [...] -> [..., n].

    TensorFlow sums the gradients of a row one by one. Here, one product with the one-hot ids sums
    them all. JAX sums them in the dtype of the operand, which is therefore wide.
    """
    if keras.backend.backend() != "tensorflow":
        return ops.cast(ops.take(at_least_float32(table), ids, axis=0), table.dtype)
    import tensorflow as tf

    @tf.custom_gradient
    def embedded(table: Any) -> tuple[Any, Callable[[Any], Any]]:
        def gradient(upstream: Any) -> Any:
            chosen = tf.one_hot(tf.reshape(ids, [-1]), table.shape[0], dtype=upstream.dtype)
            return tf.matmul(chosen, tf.reshape(upstream, [-1, table.shape[1]]), transpose_a=True)

        return tf.gather(table, ids), gradient

    return embedded(table)


def batch_gather(array: Any, index: Any) -> Any:
    """Gathers entries of each batch row: [batch, m, ...], [batch, n] -> [batch, n, ...].

    `take_along_axis` would need an array of indices as large as the result and, on TensorFlow, some
    35 operations.
    """
    if array.shape[1] == index.shape[1] == 1:  # there is nothing to choose
        return array
    batch, width, *rest = ops.shape(array)
    rows = ops.reshape(ops.arange(batch, dtype="int32")[:, None] * width + index, (-1,))
    flat = ops.reshape(array, (batch * width, *rest))
    return ops.reshape(ops.take(flat, rows, axis=0), (batch, ops.shape(index)[1], *rest))


def reverse_prefix(x: Any, positions: Any, lengths: Any) -> Any:
    """Reverses the first `lengths` entries of each batch row; the others stay in place.

    Args:
        x: [batch, n] or [batch, n, units].
        positions: int32 [1 or batch, n]. 0 to n - 1.
        lengths: int32 [batch, 1]. Number of entries to reverse.
    """
    index = ops.where(positions < lengths, lengths - 1 - positions, positions)
    return ops.take_along_axis(x, index[:, :, None] if len(x.shape) == 3 else index, axis=1)


def on_rows(function: Callable[[Any], Any], x: Any) -> Any:
    """Applies a function of matrices, [rows, n] -> [rows, m], to x: [..., n] -> [..., m].

    TensorFlow computes products of arrays with more than two axes by `tensordot`. XLA cannot
    compile the gradient of `tensordot` inside a loop whose sizes are unknown when it is traced.
    """
    result = function(ops.reshape(x, (-1, x.shape[-1])))
    return ops.reshape(result, (*ops.shape(x)[:-1], result.shape[-1]))

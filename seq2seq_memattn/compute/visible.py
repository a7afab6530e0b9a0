"""Checks of values where they can be seen: in eager mode and in plain TensorFlow graphs.

Compiled code (XLA, `jax.jit`) is not checked.
"""

from typing import Any

import keras

from seq2seq_memattn.compute.backend import has_static_shapes, is_eager
from seq2seq_memattn.compute.private import unwrapped


def is_visible(x: Any) -> bool:
    """Whether the values of `x` can be checked, now or when its graph runs."""
    if keras.backend.is_keras_tensor(x):
        return False
    return is_eager(x) if keras.backend.backend() == "jax" else not has_static_shapes()


def checked(x: Any, is_right: Any, problem: str, got: Any = None) -> Any:
    """Checks a condition on `x`, or adds the check to its graph.

    Args:
        x: an array for which `is_visible` is true.
        is_right: bool scalar. The condition.
        problem: the message if the condition is false, without a full stop.
        got: int scalar that the message names, or None.

    Returns:
        `x`. In a graph, operations that use the result wait for the check.

    Raises:
        ValueError: in eager mode, if the condition is false. In a graph, the check instead raises
            `tf.errors.InvalidArgumentError` when the graph runs.
    """
    if keras.backend.backend() == "jax" and not is_eager(is_right):
        return x  # a concrete array captured by a function under `jax.jit`
    if not is_eager(x):
        import tensorflow as tf

        data = [problem] if got is None else [f"{problem}; got", got]
        with tf.control_dependencies([tf.debugging.Assert(is_right, data)]):
            return tf.identity(x)
    if not bool(is_right):
        message = f"{problem}." if got is None else f"{problem}; got {int(got)}."
        raise unwrapped(ValueError(message))
    return x

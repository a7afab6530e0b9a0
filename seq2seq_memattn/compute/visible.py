"""Checks of values, made where values can be seen.

That is in eager mode and in plain TensorFlow graphs. Compiled code (XLA, `jax.jit`) is not checked.
"""

from typing import Any

import keras

from seq2seq_memattn.compute.backend import has_static_shapes, is_eager


def is_visible(x: Any) -> bool:
    """Whether `x` has values where this runs, or will have them when its graph runs."""
    if keras.backend.is_keras_tensor(x):
        return False
    return is_eager(x) if keras.backend.backend() == "jax" else not has_static_shapes()


def checked(x: Any, is_right: Any, problem: str, got: Any = None) -> Any:
    """`x`, whose use waits for a check.

    Args:
        x: visible.
        is_right: bool scalar.
        problem: what is wrong where it is false, without a full stop.
        got: int scalar to be named with it, or None.

    Returns:
        `x`.

    Raises:
        ValueError: in eager mode, if it is false; in a graph, `tf.errors.InvalidArgumentError`
            when it runs.
    """
    if not is_eager(x):
        import tensorflow as tf

        data = [problem] if got is None else [f"{problem}; got", got]
        with tf.control_dependencies([tf.debugging.Assert(is_right, data)]):
            return tf.identity(x)
    if not bool(is_right):
        raise ValueError(f"{problem}." if got is None else f"{problem}; got {int(got)}.")
    return x

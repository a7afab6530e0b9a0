"""Where padding may be."""

from typing import Any

import keras
from keras import ops

from seq2seq_memattn.compute.backend import has_static_shapes


def full_mask(x: Any, mask: Any) -> Any:
    """The mask of x, [batch, length, n], as bool [batch, length]; all true if it is None."""
    if mask is None:
        return ops.ones_like(x[:, :, 0], dtype="bool")
    return ops.cast(mask, "bool")


def padding_last(name: str, mask: Any) -> Any:
    """The mask, refused if padding comes before a real token and the values can be seen.

    They can be seen in eager mode and in plain TensorFlow graphs. Compiled code (XLA, `jax.jit`)
    takes any mask; its results with another one have no meaning.

    Args:
        name: of the argument that the mask belongs to.
        mask: bool [batch, length]. True on real tokens.

    Returns:
        `mask`, whose use waits for the check.

    Raises:
        ValueError: in eager mode; in a graph, `tf.errors.InvalidArgumentError` when it runs.
    """
    if keras.backend.is_keras_tensor(mask) or _is_compiled(mask):
        return mask
    comes_back = ops.logical_and(mask[:, 1:], ops.logical_not(mask[:, :-1]))
    is_last = ops.logical_not(ops.any(comes_back))
    problem = f"`{name}`: expected padding behind the real tokens, not before or between them"
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        if not tf.executing_eagerly():
            with tf.control_dependencies([tf.debugging.Assert(is_last, [problem])]):
                return tf.identity(mask)
    if not bool(is_last):
        raise ValueError(f"{problem}.")
    return mask


def _is_compiled(mask: Any) -> bool:
    """Whether what computes `mask` is being traced by `jax.jit`, or by TensorFlow for XLA."""
    if keras.backend.backend() != "jax":
        return has_static_shapes()
    import jax

    return isinstance(mask, jax.core.Tracer)

"""Where padding may be."""

from typing import Any

import keras
from keras import ops

from seq2seq_memattn.backend import has_static_shapes


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
    problem = f"`{name}`: expected padding behind the real tokens, not before or between them"
    if keras.backend.is_keras_tensor(mask):
        return mask
    if keras.backend.backend() == "jax":
        import jax

        if not isinstance(mask, jax.core.Tracer) and not bool(_is_padded_last(mask)):
            raise ValueError(f"{problem}.")
        return mask
    import tensorflow as tf

    if tf.executing_eagerly():
        if not bool(_is_padded_last(mask)):
            raise ValueError(f"{problem}.")
        return mask
    if has_static_shapes():
        return mask
    with tf.control_dependencies([tf.debugging.Assert(_is_padded_last(mask), [problem])]):
        return tf.identity(mask)


def _is_padded_last(mask: Any) -> Any:
    comes_back = ops.logical_and(mask[:, 1:], ops.logical_not(mask[:, :-1]))
    return ops.logical_not(ops.any(comes_back))

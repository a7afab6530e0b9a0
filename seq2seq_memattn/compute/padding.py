"""Where padding may be."""

from typing import Any

from keras import ops

from seq2seq_memattn.compute.visible import checked, is_visible


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
    if not is_visible(mask):
        return mask
    comes_back = ops.logical_and(mask[:, 1:], ops.logical_not(mask[:, :-1]))
    problem = f"`{name}`: expected padding behind the real tokens, not before or between them"
    return checked(mask, ops.logical_not(ops.any(comes_back)), problem)

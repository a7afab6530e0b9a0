"""Masks of padding, and checks of them."""

from typing import Any

from keras import ops

from seq2seq_memattn.compute.visible import checked, is_visible


def full_mask(x: Any, mask: Any) -> Any:
    """`mask` as bool [batch, length]; if it is None, all true, sized for `x` [batch, length, n]."""
    if mask is None:
        return ops.ones_like(x[:, :, 0], dtype="bool")
    return ops.cast(mask, "bool")


def not_empty(name: str, mask: Any) -> Any:
    """Checks that there is at least one position, where `padding_last` can check.

    Args:
        name: name of the argument that the mask belongs to, for the message.
        mask: bool [batch, length].

    Returns:
        `mask`. In a graph, operations that use the result wait for the check.

    Raises:
        tf.errors.InvalidArgumentError: in a graph, when it runs, if the length is 0.
    """
    if mask.shape[1] is not None or not is_visible(mask):  # known lengths are checked at the call
        return mask
    problem = f"`{name}`: expected a length of at least 1; got 0"
    return checked(mask, ops.shape(mask)[1] > 0, problem)


def padding_last(name: str, mask: Any) -> Any:
    """Checks that no padding comes before a real token, if the values can be seen.

    Values can be seen in eager mode and in plain TensorFlow graphs. Compiled code (XLA, `jax.jit`)
    is not checked: its results for padding elsewhere have no meaning.

    Args:
        name: name of the argument that the mask belongs to, for the message.
        mask: bool [batch, length]. True on real tokens.

    Returns:
        `mask`. In a graph, operations that use the result wait for the check.

    Raises:
        ValueError: in eager mode, if padding comes before a real token. In a graph, the check
            instead raises `tf.errors.InvalidArgumentError` when the graph runs.
    """
    if not is_visible(mask):
        return mask
    comes_back = ops.logical_and(mask[:, 1:], ops.logical_not(mask[:, :-1]))
    problem = f"`{name}`: expected padding after the real tokens, not before or between them"
    return checked(mask, ops.logical_not(ops.any(comes_back)), problem)


def no_longer_than(name: str, x: Any, mask: Any, longest: int) -> Any:
    """Checks that there is only padding after the first `longest` positions of a source.

    As `padding_last`, it checks only where values can be seen.

    Args:
        name: name of the argument that is checked, for the message.
        x: the argument, of any shape.
        mask: bool [batch, length]. True on real tokens.
        longest: int > 0. The attention's `max_source_length`.

    Returns:
        `x`. In a graph, operations that use the result wait for the check.

    Raises:
        ValueError: in eager mode, if a real token comes later. In a graph, the check instead
            raises `tf.errors.InvalidArgumentError` when the graph runs.
    """
    width = mask.shape[1]
    if (width is not None and width <= longest) or not is_visible(x):
        return x
    because = "as the attention's `max_source_length` demands"
    problem = f"`{name}`: expected at most {longest} tokens, {because}"
    return checked(x, ops.logical_not(ops.any(mask[:, longest:])), problem)

"""The rules of one search: its options, and the limits of each source."""

import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from seq2seq_memattn.checks import check_int, check_size
from seq2seq_memattn.compute.backend import is_eager
from seq2seq_memattn.compute.visible import checked, is_visible
from seq2seq_memattn.search.options import Lengths, SearchOptions
from seq2seq_memattn.vocabulary import END_ID, PAD_ID

MAX_SEED = 2**31 - 1  # the largest int32
SPARE = 10  # steps that the default limit adds
ROUNDING = 1e-6  # more than float32's error in a product


class SourceRules(NamedTuple):
    """The rules of each source of a batch. A field that a search does not use is ().

    Fields:
        limits: int32 [batch, 1]. Steps that a hypothesis may take.
        least: int32 [batch, 1]. Tokens that a hypothesis has before it may end.
        prefix: int32 [batch, n]. The first tokens of its targets, then padding.
        is_token: bool [batch, source_length]. Whether a position of a source is not padding.
        seeds: uint32 [batch, 2]. See `row_seeds`.
    """

    limits: Any
    least: Any = ()
    prefix: Any = ()
    is_token: Any = ()
    seeds: Any = ()


class Rules(NamedTuple):
    """The rules of one search, the same at every step.

    Fields:
        options: `SearchOptions`.
        sources: `SourceRules`.
    """

    options: SearchOptions
    sources: SourceRules


def source_rules(
    options: SearchOptions,
    source: Any,
    pad_id: int,
    limits: Any,
    min_length: Any = None,
    prefix: Any = (),
    seeds: Any = (),
) -> SourceRules:
    """The `SourceRules` of a batch from what a search was called with.

    Args:
        options: the options of the search.
        source, min_length: see `beam_search`.
        pad_id: the id of padding in sources.
        limits: int32 [batch], from `step_limits`.
        prefix: int32 [batch, n], by the tokens' numbers in search, or ().
        seeds: uint32 [batch, 2], or ().
    """
    has_least = min_length is not None and not (isinstance(min_length, int) and min_length == 0)
    return SourceRules(
        limits=limits[:, None],
        least=(ops.zeros_like(limits) + min_length)[:, None] if has_least else (),
        prefix=prefix,
        is_token=ops.not_equal(source, pad_id) if options.coverage_penalty else (),
        seeds=seeds,
    )


def is_int_array(x: Any, most_axes: int) -> bool:
    """Whether `x` is an array of integers with at most so many axes; NumPy's numbers are not."""
    is_array = hasattr(x, "shape") and not isinstance(x, numbers.Number)
    return is_array and "int" in str(x.dtype) and len(x.shape) <= most_axes


def checked_lengths(name: str, value: Any, batch: int | None, least: int) -> Any:
    """Checks an argument with one length for all sources or one for each, as far as it is visible.

    Args:
        name: the argument's name.
        value: None, an int, or integers [batch] or [], as an array or a list.
        batch: int or None. The number of sources, if it is known.
        least: int. The least length allowed.

    Returns:
        None, int, or an int32 tensor of the same shape.

    Raises:
        ValueError: if it is anything else, or a length is below `least`.
    """
    if value is None:
        return None
    lengths = np.asarray(value) if isinstance(value, (list, tuple)) else value
    if not is_int_array(lengths, most_axes=1):
        check_int(name, value, least)
        return int(value)
    if len(lengths.shape):
        check_size(name, "batch", lengths.shape[0], batch)
    lengths = ops.convert_to_tensor(lengths, dtype="int32")
    if not is_visible(lengths):
        return lengths
    smallest = ops.min(lengths, initial=np.iinfo(np.int32).max)
    problem = f"`{name}`: expected lengths of at least {least}"
    return checked(lengths, smallest >= least, problem, got=smallest)


def checked_prefix(prefix: Any, max_length: Any) -> Any:
    """Checks the prefixes of a search, if their values are visible.

    Args:
        prefix: int32 [batch, n], by the tokens' numbers in search.
        max_length: None, int, or int32 [batch] or [].

    Returns:
        `prefix`.

    Raises:
        ValueError: if a token follows padding or is a start or end token, or if a prefix is longer
            than `max_length`.
    """
    if not is_visible(prefix):
        return prefix
    is_token = ops.not_equal(prefix, PAD_ID)
    prefix = checked(
        prefix,
        ops.all(ops.logical_or(is_token[:, :-1], ops.logical_not(is_token[:, 1:]))),
        "`prefix`: expected tokens, then padding; a token follows padding",
    )
    prefix = checked(
        prefix,
        ops.all(ops.logical_or(prefix == PAD_ID, prefix > END_ID)),
        "`prefix`: expected neither the start token nor the end token",
    )
    if max_length is None:
        return prefix
    fits = ops.all(prefix_lengths(prefix) <= ops.cast(max_length, "int32"))
    return checked(prefix, fits, "`prefix`: expected at most `max_length` tokens")


def prefix_lengths(prefix: Any) -> Any:
    """Tokens of each prefix: int32 [batch], or 0 without prefixes."""
    if isinstance(prefix, tuple):
        return 0
    return ops.sum(ops.cast(ops.not_equal(prefix, PAD_ID), "int32"), axis=1)


def steps_of(lengths: Lengths, source_lengths: Any, prefix_lengths: Any = 0) -> tuple[Any, Any]:
    """The limits of each source: the most steps, and the tokens before its targets may end.

    A prefix is written whole, however long it is.

    Args:
        lengths: `Lengths`.
        source_lengths: int32 [batch]. NumPy or a tensor.
        prefix_lengths: int32 [batch], or 0 without prefixes.

    Returns:
        limits: int32 [batch].
        least: int32 [batch], or None if targets may end at once.
    """
    least = None
    if lengths.min_length:
        least = 0 * source_lengths + lengths.min_length
    if lengths.min_length_ratio:
        # Both lengths without end token.
        share = _share(source_lengths - 1, lengths.min_length_ratio, ops.ceil, 1.0 - ROUNDING)
        least = share if least is None else ops.maximum(least, share)
    share = None
    if lengths.max_length_ratio is not None:
        share = _share(source_lengths, lengths.max_length_ratio, ops.floor, 1.0 + ROUNDING)
        share = ops.maximum(share, 1)
    if lengths.max_length is not None:
        limits = 0 * source_lengths + lengths.max_length
        limits = limits if share is None else ops.minimum(limits, share)
    elif share is not None:
        limits = share
    else:
        limits = default_limit(source_lengths) + prefix_lengths
        limits = limits if least is None else ops.maximum(limits, least + SPARE)
    if not isinstance(prefix_lengths, int):
        limits = ops.maximum(limits, prefix_lengths + 1)
    return limits, least


def _share(lengths: Any, ratio: float, rounded: Callable[[Any], Any], correction: float) -> Any:
    return ops.cast(rounded(ratio * ops.cast(lengths, "float32") * correction), "int32")


def default_limit(source_length: Any) -> Any:
    """Steps that a hypothesis may take by default; `source_length` is an int or an array."""
    return 2 * source_length + SPARE


def step_limits(
    source: Any, max_length: Any, pad_id: int = PAD_ID, prefix: Any = ()
) -> tuple[Any, Any]:
    """Steps that each sentence may take, int32 [batch], and the largest of them, a scalar.

    Args:
        source, max_length: see `beam_search`.
        pad_id: the id of padding in sources.
        prefix: int32 [batch, n], or (). The default limit does not count the prefix.
    """
    if max_length is None:
        lengths = ops.sum(ops.cast(ops.not_equal(source, pad_id), "int32"), axis=1)
        limits = default_limit(lengths) + prefix_lengths(prefix)
    else:
        limits = ops.zeros_like(source[:, 0]) + ops.cast(max_length, "int32")
        if isinstance(max_length, int):
            return limits, max_length
    if keras.backend.backend() != "jax":
        return limits, ops.max(limits, initial=0)
    # JAX's loops need a size known ahead, which a traced limit does not give.
    if is_eager(limits):
        return limits, int(ops.max(limits, initial=0))
    if max_length is None:
        longest = 0 if isinstance(prefix, tuple) else prefix.shape[1]
        return limits, default_limit(source.shape[1]) + longest
    raise ValueError("Under jax.jit `max_length` must be an int or None; got an array.")

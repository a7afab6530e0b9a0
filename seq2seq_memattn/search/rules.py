"""The rules of one search: its options, and the limits of each source."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from seq2seq_memattn.compute.backend import has_static_shapes, is_eager
from seq2seq_memattn.search.options import Lengths, SearchOptions
from seq2seq_memattn.vocabulary import PAD_ID

SPARE = 10  # steps that the default limit adds to twice the source's length
ROUNDING = 1e-6  # more than float32's error in a product


class SourceRules(NamedTuple):
    """The rules of each source of a batch. A field that a search does not use is ().

    Fields:
        limits: int32 [batch, 1]. Steps that a hypothesis may take.
        least: int32 [batch, 1]. The minimum number of tokens before the end token.
        prefix: int32 [batch, n]. The first tokens of the source's targets, then padding.
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


def prefix_lengths(prefix: Any) -> Any:
    """The number of tokens in each prefix: int32 [batch], or 0 without prefixes."""
    if isinstance(prefix, tuple):
        return 0
    return ops.sum(ops.cast(ops.not_equal(prefix, PAD_ID), "int32"), axis=1)


def limits_of(
    lengths: Lengths, source_lengths: Any, prefix_lengths: Any = 0, has_end: bool = True
) -> tuple[Any, Any]:
    """The limits of each source: how many steps its targets may take, and how many they must take.

    The second limit does not count the end token. The first always leaves room for the whole prefix
    and one more step.

    Args:
        lengths: `Lengths`.
        source_lengths: int32 [batch]. NumPy or a tensor.
        prefix_lengths: int32 [batch], or 0 without prefixes.
        has_end: whether `source_lengths` counts an end token.

    Returns:
        limits: int32 [batch].
        least: int32 [batch], or None if targets may end at once.
    """
    least = None
    with_end = source_lengths if has_end else source_lengths + 1
    if lengths.min_length:
        least = 0 * source_lengths + lengths.min_length
    if lengths.min_length_ratio:
        # Both lengths without end token.
        share = _share(with_end - 1, lengths.min_length_ratio, ops.ceil, 1.0 - ROUNDING)
        least = share if least is None else ops.maximum(least, share)
    share = None
    if lengths.max_length_ratio is not None:
        # Both lengths with end token.
        share = _share(with_end, lengths.max_length_ratio, ops.floor, 1.0 + ROUNDING)
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
    source: Any, max_length: Any, pad_id: int = PAD_ID, prefix: Any = (), most: int | None = None
) -> tuple[Any, Any]:
    """Steps each sentence may take, int32 [batch], and a scalar: their maximum or an upper bound.

    Args:
        source, max_length: see `beam_search`.
        pad_id: the id of padding in sources.
        prefix: int32 [batch, n], or (). Its length is added to the default limit.
        most: int or None. The largest of the limits, if it is known.
    """
    if max_length is None:
        lengths = ops.sum(ops.cast(ops.not_equal(source, pad_id), "int32"), axis=1)
        limits = default_limit(lengths) + prefix_lengths(prefix)
    else:
        limits = ops.zeros(ops.shape(source)[:1], "int32") + ops.cast(max_length, "int32")
        if isinstance(max_length, int):
            return limits, max_length
    if most is not None:
        return limits, most
    if not has_static_shapes():
        return limits, ops.max(limits, initial=0)
    # Loops of JAX and XLA need a size known ahead, which a traced limit does not give.
    if is_eager(limits):
        return limits, int(ops.max(limits, initial=0))
    if max_length is None:
        longest = 0 if isinstance(prefix, tuple) else ops.shape(prefix)[1]
        return limits, default_limit(ops.shape(source)[1]) + longest
    raise ValueError("Under jax.jit or XLA `max_length` must be an int or None; got an array.")

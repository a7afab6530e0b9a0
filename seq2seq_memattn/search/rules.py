"""The rules of one search: its sizes, limits, length penalty and sampling."""

import numbers
from dataclasses import dataclass
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from seq2seq_memattn.checks import check_int, check_number, check_size
from seq2seq_memattn.compute.backend import is_eager
from seq2seq_memattn.compute.visible import checked, is_visible
from seq2seq_memattn.vocabulary import PAD_ID

MAX_SEED = 2**31 - 1  # the largest int32


@dataclass(frozen=True)
class Sampling:
    """Which tokens may be drawn, and how probable each is; see `sample`.

    Raises:
        ValueError: if an argument is not a number or is out of range.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        check_number("temperature", self.temperature)
        if not self.temperature > 0.0:
            raise ValueError(f"`temperature` must be positive; got {self.temperature}.")
        check_int("top_k", self.top_k, least=0)
        check_number("top_p", self.top_p)
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"`top_p` must be above 0 and at most 1; got {self.top_p}.")


class Rules(NamedTuple):
    """The rules of one search, the same at every step.

    Fields:
        beam_size, n_best, exponent, early_stopping: see `beam_search`.
        limits: int32 [batch, 1]. Steps that a hypothesis may take.
        sampling: `Sampling`, to draw beam_size hypotheses independently; None: beam search.
        seeds: uint32 [batch, 2], see `row_seeds`; () in beam search.
    """

    beam_size: int
    n_best: int
    exponent: float
    early_stopping: bool
    limits: Any
    sampling: Any = None
    seeds: Any = ()


def check_sizes(beam_size: int, n_best: int) -> None:
    """Raises ValueError if `beam_size` or `n_best` of `beam_search` is not an int in its range."""
    check_int("beam_size", beam_size)
    check_int("n_best", n_best)
    if n_best > beam_size:
        raise ValueError(f"`n_best` must be at most `beam_size`, {beam_size}; got {n_best}.")


def is_int_array(x: Any, most_axes: int) -> bool:
    """Whether `x` is an array of integers with at most so many axes; NumPy's numbers are not."""
    is_array = hasattr(x, "shape") and not isinstance(x, numbers.Number)
    return is_array and "int" in str(x.dtype) and len(x.shape) <= most_axes


def checked_limits(max_length: Any, batch: int | None) -> Any:
    """Checks `max_length` of a search, where its values can be seen (see `ids_below`).

    Args:
        max_length: None, an int, or integers [batch] or [], as an array or a list.
        batch: int or None. The number of sources, if it is known.

    Returns:
        None, int, or an int32 tensor of the same shape.

    Raises:
        ValueError: if it is anything else, or a limit is not positive.
    """
    if max_length is None:
        return None
    is_list = isinstance(max_length, (list, tuple))
    limits = np.asarray(max_length) if is_list else max_length
    if not is_int_array(limits, most_axes=1):
        check_int("max_length", max_length)
        return int(max_length)
    if len(limits.shape):
        check_size("max_length", "batch", limits.shape[0], batch)
    limits = ops.convert_to_tensor(limits, dtype="int32")
    if not is_visible(limits):
        return limits
    least = ops.min(limits, initial=np.iinfo(np.int32).max)
    return checked(limits, least > 0, "`max_length`: expected positive limits", got=least)


def default_limit(source_length: Any) -> Any:
    """Steps that a hypothesis may take by default; `source_length` is an int or an array."""
    return 2 * source_length + 10


def step_limits(source: Any, max_length: Any, pad_id: int = PAD_ID) -> tuple[Any, Any]:
    """Steps that each sentence may take, int32 [batch], and the largest of them, a scalar."""
    if max_length is None:
        lengths = ops.sum(ops.cast(ops.not_equal(source, pad_id), "int32"), axis=1)
        limits = default_limit(lengths)
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
        return limits, default_limit(source.shape[1])
    raise ValueError("Under jax.jit `max_length` must be an int or None; got an array.")


def length_penalty(lengths: Any, exponent: float) -> Any:
    """Length penalty: the divisor of a log-probability.

    Source: Wu et al. (2016), equation 14: ((5 + length) / 6) ** exponent.

    Args:
        lengths: int, any shape. Tokens without the end token.
        exponent: float. 0 divides by 1.

    Returns:
        float32, the shape of `lengths`.
    """
    lengths = ops.cast(lengths, "float32")
    if not exponent:
        return ops.ones_like(lengths)
    return ((5.0 + lengths) / 6.0) ** exponent


def best_penalty(lengths: Any, limits: Any, exponent: float) -> Any:
    """The most favourable penalty of any length from `lengths` to `limits`.

    This is the largest one, since a log-probability is negative. The penalty is monotonic in
    length, so the largest is at one end.
    """
    return ops.maximum(length_penalty(lengths, exponent), length_penalty(limits, exponent))

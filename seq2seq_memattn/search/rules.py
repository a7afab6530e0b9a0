"""The rules of one search: its sizes, limits, length penalty and sampling."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.compute.backend import is_eager
from seq2seq_memattn.vocabulary import PAD_ID

MAX_SEED = 2**31 - 1  # the largest int32


@dataclass(frozen=True)
class Sampling:
    """Which tokens may be drawn, and how probable each is; see `sample`.

    Raises:
        ValueError: if a number is out of range.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.temperature < math.inf:
            raise ValueError(f"`temperature` must be positive; got {self.temperature}.")
        if self.top_k < 0:
            raise ValueError(f"`top_k` must be positive, or 0 for all; got {self.top_k}.")
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"`top_p` must be above 0 and at most 1; got {self.top_p}.")


def check_seed(seed: int) -> None:
    """Raises ValueError if `seed` of `sample` is out of range."""
    if not 0 <= seed <= MAX_SEED:
        raise ValueError(f"`seed` must be in 0..{MAX_SEED}; got {seed}.")


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
    """Raises ValueError if `beam_size` or `n_best` of `beam_search` is out of range."""
    if beam_size < 1:
        raise ValueError(f"`beam_size` must be positive; got {beam_size}.")
    if not 1 <= n_best <= beam_size:
        raise ValueError(f"`n_best` must be in 1..{beam_size}, the beam size; got {n_best}.")


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
        return limits, ops.max(limits)
    # JAX's loops need a size known ahead, which a traced limit does not give.
    if is_eager(limits):
        return limits, int(ops.max(limits))
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

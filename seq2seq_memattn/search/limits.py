"""How far a search may go: checks of its sizes, and steps for each sentence."""

from typing import Any

import keras
from keras import ops

from seq2seq_memattn.vocabulary import PAD_ID


def check_sizes(beam_size: int, n_best: int) -> None:
    """Raises ValueError if `beam_size` or `n_best` of `beam_search` is out of range."""
    if beam_size < 1:
        raise ValueError(f"`beam_size` must be positive; got {beam_size}.")
    if not 1 <= n_best <= beam_size:
        raise ValueError(f"`n_best` must be in 1..{beam_size}, the beam size; got {n_best}.")


def default_limit(source_length: Any) -> Any:
    """Steps that a hypothesis may take if nothing is said; of ints or arrays of them."""
    return 2 * source_length + 10


def step_limits(source: Any, max_length: Any, forced_lengths: Any) -> tuple[Any, Any]:
    """How many steps each sentence may take: int32 [batch], and the most of them, a scalar."""
    if forced_lengths is not None:
        limits = ops.cast(forced_lengths, "int32") + 1
    elif max_length is None:
        lengths = ops.sum(ops.cast(ops.not_equal(source, PAD_ID), "int32"), axis=1)
        limits = default_limit(lengths)
    else:
        limits = ops.zeros_like(source[:, 0]) + ops.cast(max_length, "int32")
        if isinstance(max_length, int):
            return limits, max_length
    if keras.backend.backend() != "jax":
        return limits, ops.max(limits)
    import jax

    # JAX's loops need a size that is known ahead; a traced limit has none.
    if not isinstance(limits, jax.core.Tracer):
        return limits, int(ops.max(limits))
    if forced_lengths is None and max_length is None:
        return limits, default_limit(source.shape[1])
    raise ValueError("Under jax.jit `max_length` must be an int, and lengths cannot be forced.")

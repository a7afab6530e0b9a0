"""Position encodings that spread the slots of a K-memory over the source."""

from typing import Any, Literal

from keras import ops

PositionEncoding = Literal["masked", "sum_to_one", "mean_one"]


def position_encoding(
    num_slots: int, max_source_length: int, mask: Any, kind: PositionEncoding, dtype: str
) -> Any:
    """The position encodings (l in the paper) of a batch of sources.

    Source: Britz, Guan and Luong (2017), section 3.2, equation 10:
        L[k, s] = (1 - k/K) (1 - s/S) + (k/K) (s/S),  k in 1..K, s from 0.
    Symbols: K -> num_slots, S -> max_source_length.
    The paper masks L beyond each sentence and renormalises L "across the timestep dimension", but
    does not say to which sum. "sum_to_one" divides by the sum over the sentence. "mean_one" divides
    by the mean, which keeps the scale of the energies. "masked" leaves the values as they are.

    Args:
        num_slots: int > 0.
        max_source_length: int > 0. Longest source of the corpus in tokens, end token included. The
            encodings of later positions have no meaning.
        mask: bool [batch, source_length], true on real tokens.
        kind: "masked", "sum_to_one" or "mean_one".
        dtype: float dtype to compute in; positions need float32 at least.

    Returns:
        float [batch, source_length, num_slots], 0 beyond each sentence. A slot whose encodings
        are all 0 (the last slot of a one-token source) stays 0.
    """
    slots = ops.cast(ops.arange(1, num_slots + 1, dtype="int32"), dtype)[None, :] / num_slots
    # `ops.any` over the batch has shape [source_length], even for a batch of 0 sources.
    positions = ops.cumsum(ops.ones_like(ops.any(mask, axis=0), dtype="int32")) - 1
    times = (ops.cast(positions, dtype) / max_source_length)[:, None]
    encoding = (1.0 - slots) * (1.0 - times) + slots * times  # [source_length, num_slots]
    real = ops.cast(mask, dtype)[:, :, None]
    encoding = encoding[None] * real  # [batch, source_length, num_slots]
    if kind == "masked":
        return encoding
    total = ops.sum(encoding, axis=1, keepdims=True)
    if kind == "mean_one":
        total = total / ops.maximum(ops.sum(real, axis=1, keepdims=True), 1.0)
    return encoding / ops.where(total > 0.0, total, ops.ones_like(total))

"""Draws tokens at random, with temperature, top-k and top-p."""

import math
from collections.abc import Callable
from typing import Any

from keras import ops

from seq2seq_memattn.compute.random_numbers import uniform
from seq2seq_memattn.compute.rows import batch_gather
from seq2seq_memattn.search.options import Sampling
from seq2seq_memattn.vocabulary import END_ID

# The maximum number of steps of a hypothesis. A word of the random generator's counter has 24 bits
# for the number of the step, and 8 bits for the number of the try in this step.
MAX_STEPS = 1 << 24

Numbers = Callable[[Any], Any]


def row_seeds(seed: Any, rows: Any) -> Any:
    """Each sentence's key, from which its random numbers are made: uint32 [batch, 2].

    Args:
        seed: int, or int32 [batch]. Seed of the search, or of each sentence.
        rows: int32 [batch]. Sentences with the same seed and row have the same random numbers.
    """
    rows = ops.cast(rows, "uint32")
    return ops.stack([ops.cast(seed, "uint32") + ops.zeros_like(rows), rows], axis=1)


def draw(logits: Any, seeds: Any, step: Any, sampling: Sampling) -> tuple[Any, Any]:
    """Draws a token for each hypothesis.

    Source: Holtzman et al. (2020), section 3.1 (top-p); Fan et al. (2018), section 5.4 (top-k).

    Args:
        logits: float32 [batch, queries, vocab_size]. Padding and the start token are not drawn.
        seeds: uint32 [batch, 2]. See `row_seeds`.
        step: int32 scalar. Steps taken before.
        sampling: which tokens may be drawn.

    Returns:
        token: int32 [batch, queries].
        logit: float32 [batch, queries]. The token's logit, not divided by the temperature.
    """
    batch, num_queries = ops.shape(logits)[0], logits.shape[1]
    key = (seeds[:, :1], seeds[:, 1:])
    queries = ops.arange(num_queries, dtype="int32")

    def numbers(tries: Any) -> Any:
        return ops.reshape(uniform(key, (queries, MAX_STEPS * tries + step)), (-1,))

    # Logits [rows, n] of all n tokens except padding and the start token.
    candidates = ops.reshape(logits[:, :, END_ID:], (-1, logits.shape[2] - END_ID))
    tokens = None
    if 0 < sampling.top_k < candidates.shape[1]:
        candidates, tokens = ops.top_k(candidates, sampling.top_k)
    relative = candidates - ops.max(candidates, axis=1, keepdims=True)
    weights = ops.exp(relative / sampling.temperature)
    if sampling.top_p == 1.0:
        place = _draw_place(weights, numbers(0))
    else:
        place = _draw_probable_place(weights, numbers, sampling.top_p)
    token = place if tokens is None else ops.cast(_at(tokens, place), "int32")
    shape = (batch, num_queries)
    return END_ID + ops.reshape(token, shape), ops.reshape(_at(candidates, place), shape)


def _draw_probable_place(weights: Any, numbers: Numbers, top_p: float) -> Any:
    """As `_draw_place`, from the smallest set of most probable places with a share of `top_p`.

    A place is outside the set if the more probable places alone already have this share. Such a
    place is rejected, and the next try draws only among the places more probable than that one. A
    few tries suffice, and each costs far less than sorting the weights.

    Args:
        weights: float32 [rows, n].
        numbers: function from the number of a try, counted from 0, to float32 [rows] in [0, 1).
        top_p: float.
    """
    share = top_p * ops.sum(weights, axis=1)

    def body(tries: Any, floor: Any, place: Any, is_open: Any) -> tuple[Any, ...]:
        drawn = _draw_place(_above(weights, floor), numbers(tries))
        place = ops.where(is_open, drawn, place)
        own = _at(weights, place)
        above = ops.sum(_above(weights, own), axis=1)
        # If `share` underflows to 0, `above` reaches it even for the most probable place.
        is_open = ops.logical_and(above >= share, above > 0.0)
        return tries + 1, ops.where(is_open, own, floor), place, is_open

    row = weights[:, 0]
    start = (
        ops.zeros((), dtype="int32"),
        ops.zeros_like(row),
        ops.zeros_like(row, dtype="int32"),
        ops.ones_like(row, dtype="bool"),
    )
    return ops.while_loop(lambda *carried: ops.any(carried[3]), body, start)[2]


def _above(weights: Any, floor: Any) -> Any:
    """Weights with those that are not above a floor, float32 [rows], set to 0."""
    return ops.where(weights > floor[:, None], weights, 0.0)


def _draw_place(weights: Any, numbers: Any) -> Any:
    """Draws a place in each row, with a probability proportional to its weight: int32 [rows].

    Draws a block, then a place in the block: cumulative sums over all places would be slow.

    Args:
        weights: float32 [rows, n].
        numbers: float32 [rows], in [0, 1).
    """
    count = weights.shape[1]
    size = math.isqrt(count)
    whole = count // size * size
    sums = ops.sum(ops.reshape(weights[:, :whole], (-1, whole // size, size)), axis=2)
    if whole < count:
        sums = ops.concatenate([sums, ops.sum(weights[:, whole:], axis=1, keepdims=True)], axis=1)
    block, numbers = _search(sums, numbers * ops.sum(sums, axis=1))
    places = size * block[:, None] + ops.arange(size, dtype="int32")
    inside = batch_gather(weights, ops.minimum(places, count - 1))
    place, _ = _search(ops.where(places < count, inside, 0.0), numbers)
    return size * block + place


def _search(weights: Any, target: Any) -> tuple[Any, Any]:
    """The first place where the cumulative sum exceeds a target, and what is left of the target.

    Args:
        weights: float32 [rows, n].
        target: float32 [rows].

    Returns:
        place: int32 [rows].
        left: float32 [rows]. The target minus the weights before the place, but not below 0.
    """
    ends = ops.cumsum(weights, axis=1)
    place = ops.sum(ops.cast(ends <= target[:, None], "int32"), axis=1)
    # Rounding may raise the target to the sum of all weights.
    last = ops.sum(ops.cast(ends < ends[:, -1:], "int32"), axis=1)
    place = ops.cast(ops.minimum(place, last), "int32")  # a sum in JAX may be int64
    before = _at(ends, place) - _at(weights, place)
    return place, ops.maximum(target - before, 0.0)


def _at(array: Any, place: Any) -> Any:
    """[rows, n], int32 [rows] -> [rows]."""
    return batch_gather(array, place[:, None])[:, 0]

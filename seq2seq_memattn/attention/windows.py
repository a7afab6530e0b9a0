"""The common part of attentions that score only a window of the source."""

import abc
from typing import Any, NamedTuple

from keras import ops

from seq2seq_memattn.attention.base import Attention
from seq2seq_memattn.compute.rows import batch_gather


class WindowScores(NamedTuple):
    """Weights of the positions in the window of each query.

    Fields:
        weights: float [batch, queries, window]. 0 where `is_inside` is false.
        positions: int32 [batch, queries, window]. Source positions; always in range.
        is_inside: bool [batch, queries, window]. Whether an entry belongs to the window.
    """

    weights: Any
    positions: Any
    is_inside: Any


class MaskedScores(NamedTuple):
    """Weights of all positions, 0 outside the window; used where shapes are fixed (XLA, JAX).

    Fields:
        weights: float [batch, queries, source_length]. 0 where `is_inside` is false.
        is_inside: bool [batch, queries, source_length]. Whether a position belongs to the window. A
            weight inside may also be 0, if it is too small for its dtype.
    """

    weights: Any
    is_inside: Any


class WindowedAttention(Attention, abc.ABC):
    """Base of attentions that can score only a window of the source.

    For a window, `score` returns `WindowScores`, or `MaskedScores` if it computed the scores of all
    positions. In training, or without a window, it returns plain scores [batch, queries,
    source_length]; `positions_scored` then counts all real positions.
    """

    def combine(self, scores: Any, rows: Any) -> Any:
        if not isinstance(scores, WindowScores):
            return super().combine(_weights(scores), rows)
        inside = gather_positions(rows, scores.positions)
        return ops.matmul(scores.weights[:, :, None, :], inside)[:, :, 0, :]

    def alignment(self, scores: Any, memory: Any) -> Any:
        if not isinstance(scores, WindowScores):
            return super().alignment(_weights(scores), memory)
        source = ops.arange(ops.shape(memory.rows)[1], dtype="int32")
        is_here = scores.positions[:, :, :, None] == source
        weights = scores.weights[:, :, :, None]
        return ops.sum(ops.where(is_here, weights, ops.zeros_like(weights)), axis=2)

    def positions_scored(self, scores: Any, memory: Any) -> Any:
        if not isinstance(scores, (WindowScores, MaskedScores)):
            return super().positions_scored(scores, memory)
        return ops.sum(ops.cast(scores.is_inside, "float32"), axis=-1)


def _weights(scores: Any) -> Any:
    """The weights, [batch, queries, source_length], of scores for all positions."""
    return scores.weights if isinstance(scores, MaskedScores) else scores


def gather_positions(rows: Any, positions: Any) -> Any:
    """Gathers the rows at positions: [batch, queries, window, n].

    Args:
        rows: [batch, source_length, n].
        positions: int32 [batch, queries, window].
    """
    batch, queries, window = ops.shape(positions)
    found = batch_gather(rows, ops.reshape(positions, (batch, queries * window)))
    return ops.reshape(found, (batch, queries, window, rows.shape[-1]))

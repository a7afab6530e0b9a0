"""What the attention looked at along given targets."""

from typing import Any

import keras
from keras import ops

from seq2seq_memattn.vocabulary import START_ID


def follow(model: Any, source: Any, tokens: Any, lengths: Any) -> tuple[Any, Any, Any]:
    """Steps through given targets and keeps what the attention did.

    Search itself keeps no scores: it would carry them for every hypothesis that it drops.

    Args:
        model: has `start`, `step`, `alignment` and `positions_scored`; see `DecodingModel`.
        source: int32 [batch, source_length].
        tokens: int32 [batch, n, max_length]. Targets, as in `BeamResult`.
        lengths: int32 [batch, n]. Steps that were taken: tokens, and the end token if there is one.

    Returns:
        scores: float [batch, n, max_length, rows]. 0 behind the last step taken.
        alignments: float [batch, n, max_length, source_length]. 0 there too.
        positions_scored: float32 scalar, mean over all real steps.
    """
    num_queries = tokens.shape[1]
    memory, state = model.start(source, num_queries)
    num_steps = ops.shape(tokens)[2]
    structure = state
    starts = ops.full_like(tokens[:, :, :1], START_ID)
    inputs = ops.concatenate([starts, tokens[:, :, :-1]], axis=2)
    real = ops.arange(num_steps)[None, None, :] < lengths[:, :, None]
    rows = _rows(model, tokens, memory, state)

    def advance(step: Any, carried: Any, scores: Any, positions: Any) -> Any:
        state = keras.tree.pack_sequence_as(structure, carried)
        _, now, state = model.step(ops.take(inputs, step, axis=2), memory, state)
        here = (ops.arange(num_steps) == step)[None, None, :]
        scores = ops.where(here[:, :, :, None], now[:, :, None, :], scores)
        looked = model.positions_scored(now, memory)[:, :, None]
        positions = ops.where(here, looked, positions)
        return step + 1, keras.tree.flatten(state), scores, positions

    shape = (*ops.shape(tokens)[:2], num_steps)
    start = (
        ops.zeros((), dtype="int32"),
        keras.tree.flatten(state),
        ops.zeros((*shape, rows[-1]), dtype=rows[0]),
        ops.zeros(shape, dtype="float32"),
    )
    _, _, scores, positions = ops.while_loop(lambda step, *_: step < num_steps, advance, start)
    scores = scores * ops.cast(real, scores.dtype)[:, :, :, None]
    weight = ops.cast(real, "float32")
    mean = ops.sum(positions * weight) / ops.sum(weight)
    flat = ops.reshape(scores, (shape[0], shape[1] * shape[2], rows[-1]))
    alignments = model.alignment(flat, memory)
    alignments = ops.reshape(alignments, (*shape, ops.shape(source)[1]))
    return scores, alignments, mean


def _rows(model: Any, tokens: Any, memory: Any, state: Any) -> tuple[str, Any]:
    """Dtype and width of the scores, from one step that is thrown away."""
    _, scores, _ = model.step(ops.full_like(tokens[:, :, 0], START_ID), memory, state)
    return keras.backend.standardize_dtype(scores.dtype), ops.shape(scores)[2]

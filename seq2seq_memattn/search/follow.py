"""What the attention looked at along given targets."""

from typing import Any

import keras
from keras import ops

from seq2seq_memattn.vocabulary import START_ID


def follow(model: Any, memory: Any, state: Any, tokens: Any, lengths: Any) -> tuple[Any, Any, Any]:
    """Steps through given targets and keeps what the attention did.

    Search itself keeps no scores: it would carry them for every hypothesis that it drops.

    Args:
        model: has `step`, `alignment` and `positions_scored`; see `DecodingModel`.
        memory, state: from the model's `start`, for n queries or more.
        tokens: int32 [batch, n, max_length]. Targets, as in `BeamResult`.
        lengths: int32 [batch, n]. Steps that were taken: tokens, and the end token if there is one.

    Returns:
        scores: float [batch, n, max_length, rows]. 0 behind the last step taken. () where scores
            are no tensor.
        alignments: float [batch, n, max_length, source_length]. 0 there too.
        positions_scored: float32 [batch, n], mean over the real steps of each target; 0 without.
    """
    num_queries, num_steps = tokens.shape[1], ops.shape(tokens)[2]
    state = keras.tree.map_structure(lambda array: array[:, :num_queries], state)
    structure = state
    starts = ops.full_like(tokens[:, :, :1], START_ID)
    inputs = ops.concatenate([starts, tokens[:, :, :-1]], axis=2)
    real = ops.arange(num_steps)[None, None, :] < lengths[:, :, None]
    _, first, _ = model.step(starts[:, :, 0], memory, state)  # for its shapes
    is_tensor = ops.is_tensor(first)
    watched = first if is_tensor else model.alignment(first, memory)

    def advance(step: Any, carried: Any, seen: Any, positions: Any) -> Any:
        state = keras.tree.pack_sequence_as(structure, carried)
        _, scores, state = model.step(ops.take(inputs, step, axis=2), memory, state)
        now = scores if is_tensor else model.alignment(scores, memory)
        here = (ops.arange(num_steps) == step)[None, None, :]
        seen = ops.where(here[:, :, :, None], now[:, :, None, :], seen)
        looked = model.positions_scored(scores, memory)[:, :, None]
        positions = ops.where(here, looked, positions)
        return step + 1, keras.tree.flatten(state), seen, positions

    shape = (*ops.shape(tokens)[:2], num_steps)
    width, dtype = ops.shape(watched)[2], keras.backend.standardize_dtype(watched.dtype)
    start = (
        ops.zeros((), dtype="int32"),
        keras.tree.flatten(state),
        ops.zeros((*shape, width), dtype=dtype),
        ops.zeros(shape, dtype="float32"),
    )
    _, _, seen, positions = ops.while_loop(lambda step, *_: step < num_steps, advance, start)
    seen = seen * ops.cast(real, seen.dtype)[:, :, :, None]
    weight = ops.cast(real, "float32")
    mean = ops.sum(positions * weight, axis=2) / ops.maximum(ops.sum(weight, axis=2), 1.0)
    if not is_tensor:
        return (), seen, mean
    flat = ops.reshape(seen, (shape[0], shape[1] * shape[2], width))
    alignments = model.alignment(flat, memory)
    return seen, ops.reshape(alignments, (*shape, ops.shape(alignments)[2])), mean

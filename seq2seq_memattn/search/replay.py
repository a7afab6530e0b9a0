"""Replay: runs the steps of search along given targets."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from seq2seq_memattn.search.protocol import AlignedModel, SearchedModel
from seq2seq_memattn.vocabulary import PAD_ID, START_ID


def replay(
    watch: Callable[[Any, Any, Any], tuple[Any, ...]],
    model: SearchedModel,
    memory: Any,
    state: Any,
    tokens: Any,
) -> tuple[Any, ...]:
    """Steps a model along given targets and keeps what `watch` returns.

    Args:
        watch: (logits, scores, written) -> arrays [batch, n, ...] to keep for a step; `written`
            [batch, n] are the targets' tokens at this step. `watch` is called once more, before the
            first step, to find the shapes of the arrays.
        model: the model.
        memory, state: from the model's `start`, for n queries or more.
        tokens: int32 [batch, n, max_length]. Targets, as in `BeamResult`.

    Returns:
        What `watch` returned at each step: arrays [batch, n, max_length, ...].
    """
    batch, num_queries, num_steps = ops.shape(tokens)
    state = keras.tree.map_structure(lambda array: array[:, : tokens.shape[1]], state)
    structure = state
    starts = ops.zeros((batch, num_queries), dtype="int32") + START_ID  # also if there are no steps
    inputs = ops.concatenate([starts[:, :, None], tokens[:, :, :-1]], axis=2)
    logits, scores, _ = model.step(starts, memory, state)

    def nothing(array: Any) -> Any:
        shape = (batch, num_queries, num_steps, *ops.shape(array)[2:])
        return ops.zeros(shape, dtype=keras.backend.standardize_dtype(array.dtype))

    def body(step: Any, carried: Any, kept: Any) -> Any:
        state = keras.tree.pack_sequence_as(structure, carried)
        logits, scores, state = model.step(ops.take(inputs, step, axis=2), memory, state)
        seen = watch(logits, scores, ops.take(tokens, step, axis=2))
        kept = [put(array, step, new) for array, new in zip(kept, seen, strict=True)]
        return step + 1, keras.tree.flatten(state), kept

    def put(array: Any, step: Any, new: Any) -> Any:
        here = ops.arange(num_steps, dtype="int32") == step
        here = ops.reshape(here, (-1, *[1] * (len(array.shape) - 3)))
        return ops.where(here, ops.expand_dims(new, 2), array)

    kept = [nothing(array) for array in watch(logits, scores, starts)]
    start = (ops.zeros((), dtype="int32"), keras.tree.flatten(state), kept)
    return tuple(ops.while_loop(lambda step, *_: step < num_steps, body, start)[2])


def replay_log_probs(model: SearchedModel, memory: Any, state: Any, tokens: Any) -> Any:
    """The log-probability of each target, in nats, without padding: float [batch, n].

    Args:
        model, memory, state, tokens: see `replay`.
    """

    def watch(logits: Any, scores: Any, written: Any) -> tuple[Any, ...]:
        del scores
        found = ops.take_along_axis(ops.log_softmax(logits), written[:, :, None], axis=2)[:, :, 0]
        return (ops.where(written == PAD_ID, ops.zeros_like(found), found),)

    return ops.sum(replay(watch, model, memory, state, tokens)[0], axis=2)


def replay_attention(
    model: AlignedModel, memory: Any, state: Any, tokens: Any, lengths: Any
) -> tuple[Any, Any, Any]:
    """What the attention read along given targets.

    Search itself keeps no scores: it would have to keep them even for hypotheses that it later
    drops.

    Args:
        model, memory, state, tokens: see `replay`.
        lengths: int32 [batch, n]. Steps that were taken: tokens, and the end token if there is one.

    Returns:
        scores: float [batch, n, max_length, rows]. 0 after the last step taken. () if the
            attention's scores are not a tensor.
        alignments: float [batch, n, max_length, source_length]. 0 after the last step taken.
        positions_scored: float32 [batch, n]. Mean number of encoder states scored per step taken; 0
            if none was taken.
    """
    is_tensor = True

    def watch(logits: Any, scores: Any, written: Any) -> tuple[Any, ...]:
        nonlocal is_tensor
        del logits, written
        is_tensor = ops.is_tensor(scores)
        looked = model.positions_scored(scores, memory)
        return (scores if is_tensor else model.alignment(scores, memory)), looked

    seen, positions = replay(watch, model, memory, state, tokens)
    batch, num_queries, num_steps, width = ops.shape(seen)
    real = ops.arange(num_steps, dtype="int32") < lengths[:, :, None]
    seen = seen * ops.cast(real, seen.dtype)[:, :, :, None]
    weight = ops.cast(real, "float32")
    mean = ops.sum(positions * weight, axis=2) / ops.maximum(ops.sum(weight, axis=2), 1.0)
    if not is_tensor:
        return (), seen, mean
    # For all steps at once.
    flat = ops.reshape(seen, (batch, num_queries * num_steps, width))
    alignments = model.alignment(flat, memory)
    shape = (batch, num_queries, num_steps, ops.shape(alignments)[2])
    return seen, ops.reshape(alignments, shape), mean

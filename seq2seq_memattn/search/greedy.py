"""Greedy search: the most probable token at each step."""

from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.search.limits import step_limits
from seq2seq_memattn.search.prepared import for_decoding
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID


class GreedyResult(NamedTuple):
    """One target per source.

    Fields:
        tokens: int32 [batch, max_length]. Ends with the end token, then padding.
        log_probs: float32 [batch]. Sums over tokens, the end token included.
        lengths: int32 [batch]. Tokens without the end token.
        is_finished: bool [batch]. False where the limit cut a target.
    """

    tokens: Any
    log_probs: Any
    lengths: Any
    is_finished: Any


def greedy_search(model: Any, source: Any, max_length: Any = None) -> GreedyResult:
    """Takes the most probable token at each step.

    Args:
        model, source, max_length: see `beam_search`.

    Returns:
        `GreedyResult`.
    """
    model = for_decoding(model)
    source = ops.convert_to_tensor(source, dtype="int32")
    limits, num_steps = step_limits(source, max_length, None)
    memory, state = model.start(source, 1)
    structure = state
    batch = ops.shape(source)[0]

    def goes_on(step: Any, last: Any, carried: Any, tokens: Any, total: Any, going: Any) -> Any:
        del last, carried, tokens, total
        return ops.logical_and(step < num_steps, ops.any(going))

    def advance(step: Any, last: Any, carried: Any, tokens: Any, total: Any, going: Any) -> Any:
        state = keras.tree.pack_sequence_as(structure, carried)
        logits, _, state = model.step(last, memory, state)
        logits = ops.cast(logits[:, 0], "float32")
        chosen = logits[:, END_ID:]  # no target holds padding or the start token
        token = ops.cast(ops.argmax(chosen, axis=-1), "int32") + END_ID
        log_prob = ops.max(chosen, axis=-1) - ops.logsumexp(logits, axis=-1)
        total = total + ops.where(going, log_prob, 0.0)
        here = (ops.arange(num_steps) == step)[None, :]
        tokens = ops.where(here, ops.where(going, token, PAD_ID)[:, None], tokens)
        going = ops.logical_and(going, ops.logical_and(token != END_ID, step + 1 < limits))
        return step + 1, token[:, None], keras.tree.flatten(state), tokens, total, going

    start = (
        ops.zeros((), dtype="int32"),
        ops.full((batch, 1), START_ID, dtype="int32"),
        keras.tree.flatten(state),
        ops.full((batch, num_steps), PAD_ID, dtype="int32"),
        ops.zeros((batch,), dtype="float32"),
        ops.ones((batch,), dtype="bool"),
    )
    _, _, _, tokens, total, _ = ops.while_loop(goes_on, advance, start)
    ends = tokens == END_ID
    is_finished = ops.any(ends, axis=1)
    ended_at = ops.cast(ops.argmax(ops.cast(ends, "int32"), axis=1), "int32")
    return GreedyResult(tokens, total, ops.where(is_finished, ended_at, limits), is_finished)

"""The steps of search: the hypotheses, their successors, and when a sentence is done."""

from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.compute.rows import batch_gather
from seq2seq_memattn.search.draw import draw
from seq2seq_memattn.search.protocol import SearchedModel
from seq2seq_memattn.search.rules import Rules, best_penalty, length_penalty
from seq2seq_memattn.search.top_successors import DEAD, Successors, best_successors
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID


class Beam(NamedTuple):
    """The hypotheses of each source; arrays are [batch, beam].

    Fields:
        tokens: int32. The last token of each, which the model reads next.
        log_probs: float32. Sums so far, in nats.
        lengths: int32. Tokens without the end token.
        is_finished: bool.
    """

    tokens: Any
    log_probs: Any
    lengths: Any
    is_finished: Any


class Written(NamedTuple):
    """What hypotheses wrote during some steps; the beam is that of the last step.

    Fields:
        tokens: int32 [batch, beam, steps].
        ancestors: int32 [batch, beam]. Their ancestors' places in the beam before those steps.
    """

    tokens: Any
    ancestors: Any


def first_beam(batch: Any, beam_size: int, num_live: int = 1) -> Beam:
    """The beam before the first step: the first `num_live` hypotheses are live and empty."""
    shape = (batch, beam_size)
    is_live = ops.arange(beam_size)[None, :] < num_live
    return Beam(
        tokens=ops.full(shape, START_ID, dtype="int32"),
        log_probs=ops.where(is_live, 0.0, DEAD) * ops.ones(shape, dtype="float32"),
        lengths=ops.zeros(shape, dtype="int32"),
        is_finished=ops.zeros(shape, dtype="bool"),
    )


def nothing_written(shape: tuple[Any, ...], num_steps: Any) -> Written:
    """An empty `Written` of shape [..., beam], with room for `num_steps`."""
    return Written(
        tokens=ops.full((*shape, num_steps), PAD_ID, dtype="int32"),
        ancestors=ops.arange(shape[-1], dtype="int32") + ops.zeros(shape, dtype="int32"),
    )


def extend_beam(
    model: SearchedModel,
    memory: Any,
    state: Any,
    beam: Beam,
    step: Any,
    rules: Rules,
    num_steps: int,
) -> tuple[Any, Beam, Any, Written]:
    """Takes steps until all sentences are done, at most `num_steps`.

    Args:
        model: the model to search with.
        memory, state: from the model's `start`, or the state from the last call.
        beam: the hypotheses.
        step: int32 scalar. Steps taken before.
        rules: the rules of the search.
        num_steps: int.

    Returns:
        step, beam, state: after these steps.
        written: what the hypotheses of `beam` wrote in these steps; padding where none was taken.
    """
    written = nothing_written((ops.shape(beam.tokens)[0], rules.beam_size), num_steps)
    structure, begin, end = state, step, step + num_steps

    def goes_on(step: Any, beam: Any, *_: Any) -> Any:
        done = is_done(Beam(*beam), step, rules)
        return ops.logical_and(step < end, ops.logical_not(ops.all(done)))

    def body(step: Any, beam: Any, carried: Any, written: Any) -> Any:
        beam = Beam(*beam)
        state = keras.tree.pack_sequence_as(structure, carried)
        logits, _, state = model.step(beam.tokens, memory, state)
        if rules.sampling is None:
            beam, carried, parent = select(beam, logits, state, step, rules)
            tokens, ancestors = (batch_gather(array, parent) for array in written)
        else:
            beam, carried = draw_next(beam, logits, step, rules), keras.tree.flatten(state)
            tokens, ancestors = written
        here = ops.arange(num_steps) == step - begin
        tokens = ops.where(here, beam.tokens[:, :, None], tokens)
        return step + 1, tuple(beam), carried, (tokens, ancestors)

    start = (step, tuple(beam), keras.tree.flatten(state), tuple(written))
    step, beam, carried, written = ops.while_loop(goes_on, body, start)
    state = keras.tree.pack_sequence_as(structure, carried)
    return step, Beam(*beam), state, Written(*written)


def select(
    beam: Beam, logits: Any, state: Any, step: Any, rules: Rules
) -> tuple[Beam, list[Any], Any]:
    """Chooses the best successors.

    Args:
        beam: the hypotheses.
        logits: [batch, beam, vocab_size]. Logits of the hypotheses' next tokens.
        state: record of arrays [batch, beam, ...]. The model's state after the step that gave the
            logits.
        step: int32 scalar. Steps taken before.
        rules: the rules of the search.

    Returns:
        beam: the successors.
        carried: the arrays of their states.
        parent: int32 [batch, beam]. The hypothesis that each successor extends.
    """
    logits = ops.cast(logits, "float32")
    frozen = ops.logical_or(beam.is_finished, step >= rules.limits)
    successors = _successors(beam, logits, frozen, step, rules)
    log_probs, parent, token = best_successors(successors, logits)
    frozen, lengths, is_finished = (
        batch_gather(array, parent) for array in (frozen, beam.lengths, beam.is_finished)
    )
    beam = _extended(lengths, is_finished, frozen, token, log_probs)
    return beam, [batch_gather(array, parent) for array in keras.tree.flatten(state)], parent


def draw_next(beam: Beam, logits: Any, step: Any, rules: Rules) -> Beam:
    """Extends each hypothesis by a token drawn at random.

    Args:
        beam, logits, step: see `select`.
        rules: the rules of the search, with `sampling`.
    """
    logits = ops.cast(logits, "float32")
    frozen = ops.logical_or(beam.is_finished, step >= rules.limits)
    token, logit = draw(logits, rules.seeds, step, rules.sampling)
    log_probs = beam.log_probs + logit - ops.logsumexp(logits, axis=-1)
    log_probs = ops.where(frozen, beam.log_probs, log_probs)
    return _extended(beam.lengths, beam.is_finished, frozen, token, log_probs)


def _extended(lengths: Any, is_finished: Any, frozen: Any, token: Any, log_probs: Any) -> Beam:
    """Hypotheses with one more token each; frozen hypotheses get padding."""
    ends = token == END_ID
    grown = ops.logical_not(ops.logical_or(frozen, ends))
    return Beam(
        tokens=ops.where(frozen, PAD_ID, token),
        log_probs=log_probs,
        lengths=lengths + ops.cast(grown, "int32"),
        is_finished=ops.logical_or(is_finished, ops.logical_and(ends, ops.logical_not(frozen))),
    )


def _successors(beam: Beam, logits: Any, frozen: Any, step: Any, rules: Rules) -> Successors:
    """The successors of hypotheses. A frozen one has only itself, as its end-token successor."""
    go_on = beam.log_probs - ops.logsumexp(logits, axis=-1)
    end = go_on + logits[:, :, END_ID]
    return Successors(
        end=ops.where(frozen, beam.log_probs, end),
        go_on=ops.where(frozen, DEAD, go_on),
        end_penalty=length_penalty(beam.lengths, rules.exponent),
        go_on_penalty=length_penalty(beam.lengths + 1, rules.exponent),
    )


def is_done(beam: Beam, step: Any, rules: Rules) -> Any:
    """Whether a sentence's result can no longer change: bool [batch]."""
    frozen = ops.logical_or(beam.is_finished, step >= rules.limits)
    all_frozen = ops.all(ops.logical_or(frozen, beam.log_probs <= DEAD / 2), axis=1)
    if not rules.early_stopping or rules.beam_size == 1:
        return all_frozen
    longest = ops.maximum(beam.lengths, rules.limits)
    reachable = beam.log_probs / best_penalty(beam.lengths, longest, rules.exponent)
    reachable = ops.max(ops.where(frozen, DEAD, reachable), axis=1)
    score = beam.log_probs / length_penalty(beam.lengths, rules.exponent)
    finished = ops.where(beam.is_finished, score, DEAD)
    worst = ops.top_k(finished, rules.n_best)[0][:, -1]
    return ops.logical_or(all_frozen, worst > reachable)


def trace(chunks: Written) -> Any:
    """All tokens of the hypotheses in the last beam, traced back to the first step.

    Args:
        chunks: `Written` of all chunks in order: tokens int32 [chunks, batch, beam, steps] and
            ancestors int32 [chunks, batch, beam].

    Returns:
        int32 [batch, beam, chunks * steps].
    """
    num_chunks, batch, beam_size, steps = ops.shape(chunks.tokens)

    def back(index: Any, slots: Any, traced: Any) -> Any:
        tokens = batch_gather(ops.take(chunks.tokens, index, axis=0), slots)
        here = (ops.arange(num_chunks) == index)[None, None, :, None]
        traced = ops.where(here, tokens[:, :, None], traced)
        return index - 1, batch_gather(ops.take(chunks.ancestors, index, axis=0), slots), traced

    slots = ops.arange(beam_size, dtype="int32") + ops.zeros((batch, beam_size), dtype="int32")
    traced = ops.full((batch, beam_size, num_chunks, steps), PAD_ID, dtype="int32")
    start = (ops.cast(num_chunks, "int32") - 1, slots, traced)
    traced = ops.while_loop(lambda index, *_: index >= 0, back, start)[2]
    return ops.reshape(traced, (batch, beam_size, num_chunks * steps))

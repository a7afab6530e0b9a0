"""The steps of search: the hypotheses, their successors, and when a sentence is done."""

from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.compute.rows import batch_gather
from seq2seq_memattn.search.constraints import allowed
from seq2seq_memattn.search.draw import draw
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.search.protocol import SearchedModel
from seq2seq_memattn.search.rules import Rules
from seq2seq_memattn.search.scores import (
    best_score,
    coverage_penalty,
    length_penalty,
    score,
    score_bonus,
)
from seq2seq_memattn.search.top_successors import DEAD, Successors, best_successors, is_dead
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID


class Beam(NamedTuple):
    """The hypotheses of each source; arrays are [batch, beam].

    Fields:
        tokens: int32. The last token of each, which the model reads next.
        log_probs: float32. Sums so far, in nats.
        lengths: int32. Tokens without the end token.
        is_finished: bool.
        penalty: float32. The coverage penalty so far; () if the search has none.
    """

    tokens: Any
    log_probs: Any
    lengths: Any
    is_finished: Any
    penalty: Any = ()


class BeamState(NamedTuple):
    """What search carries from step to step for each hypothesis, besides the beam.

    Fields:
        model: the model's state; see `SearchedModel`.
        history: int32 [batch, beam, steps]. Tokens written so far, then padding; () without
            `no_repeat_ngram`.
        coverage: float32 [batch, beam, source_length]. Sums of the alignments so far; () without a
            coverage penalty.
    """

    model: Any
    history: Any = ()
    coverage: Any = ()


class Written(NamedTuple):
    """For the beam after a chunk of steps: the tokens that each hypothesis wrote in these steps.

    Fields:
        tokens: int32 [batch, beam, steps].
        ancestors: int32 [batch, beam]. For each hypothesis, the index of its ancestor in the beam
            before these steps.
    """

    tokens: Any
    ancestors: Any


def first_beam(batch: Any, options: SearchOptions) -> Beam:
    """The beam before the first step: empty hypotheses, of which `num_live` are live."""
    shape = (batch, options.beam_size)
    is_live = ops.arange(options.beam_size, dtype="int32")[None, :] < options.num_live
    zeros = ops.zeros(shape, dtype="float32")
    return Beam(
        tokens=ops.full(shape, START_ID, dtype="int32"),
        log_probs=ops.where(is_live, zeros, DEAD),
        lengths=ops.zeros(shape, dtype="int32"),
        is_finished=ops.zeros(shape, dtype="bool"),
        penalty=zeros if options.coverage_penalty else (),
    )


def first_state(state: Any, rules: Rules, num_steps: Any) -> BeamState:
    """The state before the first of at most `num_steps` steps.

    Args:
        state: the model's.
        rules: the rules of the search.
        num_steps: int or int32 scalar.
    """
    options, sources = rules
    shape = (ops.shape(sources.limits)[0], options.beam_size)
    history, coverage = (), ()
    if options.no_repeat_ngram:
        larger = max if isinstance(num_steps, int) else ops.maximum
        steps = larger(num_steps, options.no_repeat_ngram)
        history = ops.full((*shape, steps), PAD_ID, dtype="int32")
    if options.coverage_penalty:
        coverage = ops.zeros((*shape, ops.shape(sources.is_token)[1]), dtype="float32")
    return BeamState(state, history, coverage)


def nothing_written(shape: tuple[Any, ...], num_steps: Any) -> Written:
    """An empty `Written` of shape [..., beam], with room for `num_steps`."""
    return Written(
        tokens=ops.full((*shape, num_steps), PAD_ID, dtype="int32"),
        ancestors=ops.arange(shape[-1], dtype="int32") + ops.zeros(shape, dtype="int32"),
    )


def extend_beam(
    model: SearchedModel,
    memory: Any,
    state: BeamState,
    beam: Beam,
    step: Any,
    rules: Rules,
    num_steps: int,
) -> tuple[Any, Beam, BeamState, Written, Any]:
    """Takes steps until all sentences are done, at most `num_steps`.

    Args:
        model: the model to search with.
        memory: from the model's `start`.
        state: from `first_state`, or from the last call.
        beam: the hypotheses.
        step: int32 scalar. Steps taken before.
        rules: the rules of the search.
        num_steps: int.

    Returns:
        step, beam, state: after these steps.
        written: what the hypotheses of `beam` wrote in these steps; padding for steps not taken.
        done: bool [batch]. Which sentences are done; see `is_done`.
    """
    batch, beam_size = ops.shape(beam.tokens)[0], rules.options.beam_size
    written = nothing_written((batch, beam_size), num_steps)
    structure, begin, end = state, step, step + num_steps
    choose = select if rules.options.sampling is None else draw_next

    def goes_on(step: Any, beam: Any, *_: Any) -> Any:
        done = is_done(Beam(*beam), step, rules)
        return ops.logical_and(step < end, ops.logical_not(ops.all(done)))

    def body(step: Any, beam: Any, carried: Any, written: Any) -> Any:
        beam, state = Beam(*beam), keras.tree.pack_sequence_as(structure, carried)
        logits, scores, states = model.step(beam.tokens, memory, state.model)
        state = state._replace(model=states)
        state = _noted(state, model, memory, scores, beam, step, rules)
        beam, carried, parent = choose(beam, logits, state, step, rules)
        tokens, ancestors = written
        if parent is not None:
            tokens, ancestors = batch_gather(tokens, parent), batch_gather(ancestors, parent)
        here = ops.arange(num_steps, dtype="int32") == step - begin
        tokens = ops.where(here, beam.tokens[:, :, None], tokens)
        return step + 1, tuple(beam), carried, (tokens, ancestors)

    start = (step, tuple(beam), keras.tree.flatten(state), tuple(written))
    step, beam, carried, written = ops.while_loop(goes_on, body, start)
    state, beam = keras.tree.pack_sequence_as(structure, carried), Beam(*beam)
    return step, beam, state, Written(*written), is_done(beam, step, rules)


def _noted(
    state: BeamState, model: Any, memory: Any, scores: Any, beam: Beam, step: Any, rules: Rules
) -> BeamState:
    """Adds the last tokens of the hypotheses and this step's alignment to the state."""
    history, coverage = state.history, state.coverage
    if rules.options.no_repeat_ngram:
        last = ops.arange(ops.shape(history)[2], dtype="int32") == step - 1
        history = ops.where(last, beam.tokens[:, :, None], history)
    if rules.options.coverage_penalty:
        alignment = model.alignment(scores, memory)
        read = ops.where(_is_frozen(beam, step, rules)[:, :, None], 0.0, alignment)
        coverage = coverage + ops.cast(read, "float32")
    return state._replace(history=history, coverage=coverage)


def select(
    beam: Beam, logits: Any, state: BeamState, step: Any, rules: Rules
) -> tuple[Beam, list[Any], Any]:
    """Chooses the best successors.

    Args:
        beam: the hypotheses.
        logits: [batch, beam, vocab_size]. Logits of the hypotheses' next tokens.
        state: the state after the step that gave the logits.
        step: int32 scalar. Steps taken before.
        rules: the rules of the search.

    Returns:
        beam: the successors.
        carried: the arrays of their states.
        parent: int32 [batch, beam]. The hypothesis that each successor extends.
    """
    options, logits = rules.options, ops.cast(logits, "float32")
    frozen = _is_frozen(beam, step, rules)
    if options.coverage_penalty:
        penalty = coverage_penalty(state.coverage, rules.sources.is_token, options.coverage_penalty)
        beam = beam._replace(penalty=penalty)
    go_on = beam.log_probs - ops.logsumexp(logits, axis=-1)
    logits = allowed(logits, state.history, step, rules)
    successors = _successors(beam, go_on, logits, frozen, options)
    log_probs, parent, token = best_successors(successors, logits)
    frozen, beam = keras.tree.map_structure(
        lambda array: batch_gather(array, parent), (frozen, beam)
    )
    carried = [batch_gather(array, parent) for array in keras.tree.flatten(state)]
    return _extended(beam, frozen, token, log_probs), carried, parent


def draw_next(
    beam: Beam, logits: Any, state: BeamState, step: Any, rules: Rules
) -> tuple[Beam, list[Any], None]:
    """Extends each hypothesis by a token drawn at random.

    Args:
        beam, logits, state, step: see `select`.
        rules: the rules of the search, with `sampling`.

    Returns:
        As `select`; without parents, since each hypothesis keeps its place.
    """
    logits = ops.cast(logits, "float32")
    go_on = beam.log_probs - ops.logsumexp(logits, axis=-1)
    logits = allowed(logits, state.history, step, rules)
    frozen = _is_frozen(beam, step, rules)
    token, logit = draw(logits, rules.sources.seeds, step, rules.options.sampling)
    log_probs = ops.where(frozen, beam.log_probs, go_on + logit)
    return _extended(beam, frozen, token, log_probs), keras.tree.flatten(state), None


def _is_frozen(beam: Beam, step: Any, rules: Rules) -> Any:
    """Whether a hypothesis is finished, or cut by the limit: bool [batch, beam]."""
    return ops.logical_or(beam.is_finished, step >= rules.sources.limits)


def _extended(beam: Beam, frozen: Any, token: Any, log_probs: Any) -> Beam:
    """Hypotheses with one more token each; frozen hypotheses get padding."""
    ends = token == END_ID
    grown = ops.logical_not(ops.logical_or(frozen, ends))
    ended = ops.logical_and(ends, ops.logical_not(frozen))
    return beam._replace(
        tokens=ops.where(frozen, PAD_ID, token),
        log_probs=log_probs,
        lengths=beam.lengths + ops.cast(grown, "int32"),
        is_finished=ops.logical_or(beam.is_finished, ended),
    )


def _successors(
    beam: Beam, go_on: Any, logits: Any, frozen: Any, options: SearchOptions
) -> Successors:
    """The successors of hypotheses. A frozen hypothesis has one, itself, in the field `end`."""
    end = go_on + logits[:, :, END_ID]
    longer = beam.lengths + 1
    return Successors(
        end=ops.where(frozen, beam.log_probs, end),
        go_on=ops.where(frozen, DEAD, go_on),
        end_penalty=length_penalty(beam.lengths, options.length_penalty),
        go_on_penalty=length_penalty(longer, options.length_penalty),
        end_bonus=score_bonus(beam.lengths, beam.penalty, options),
        go_on_bonus=score_bonus(longer, beam.penalty, options),
    )


def is_done(beam: Beam, step: Any, rules: Rules) -> Any:
    """Whether a sentence's result can no longer change: bool [batch]."""
    options, limits = rules.options, rules.sources.limits
    frozen = _is_frozen(beam, step, rules)
    all_frozen = ops.all(ops.logical_or(frozen, is_dead(beam.log_probs)), axis=1)
    if not options.early_stopping or options.beam_size == 1:
        return all_frozen
    longest = ops.maximum(beam.lengths, limits)
    reachable = best_score(beam.log_probs, beam.lengths, longest, options)
    reachable = ops.max(ops.where(frozen, DEAD, reachable), axis=1, initial=DEAD)
    own = score(beam.log_probs, beam.lengths, beam.penalty, options)
    worst = ops.top_k(ops.where(beam.is_finished, own, DEAD), options.n_best)[0][:, -1]
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
        here = (ops.arange(num_chunks, dtype="int32") == index)[None, None, :, None]
        traced = ops.where(here, tokens[:, :, None], traced)
        return index - 1, batch_gather(ops.take(chunks.ancestors, index, axis=0), slots), traced

    slots = ops.arange(beam_size, dtype="int32") + ops.zeros((batch, beam_size), dtype="int32")
    traced = ops.full((batch, beam_size, num_chunks, steps), PAD_ID, dtype="int32")
    start = (ops.cast(num_chunks, "int32") - 1, slots, traced)
    traced = ops.while_loop(lambda index, *_: index >= 0, back, start)[2]
    return ops.reshape(traced, (batch, beam_size, num_chunks * steps))

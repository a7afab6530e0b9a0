"""The steps of beam search: the hypotheses, their successors, and when a sentence is done."""

from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.gather import pick
from seq2seq_memattn.search.penalties import best_penalty, length_penalty
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID

DEAD = -1e30  # log-probability of what must not be chosen; finite, so that sums stay numbers


class Beam(NamedTuple):
    """Hypotheses on their way; arrays are [batch, beam].

    Fields:
        tokens: int32. The last token of each, which the model reads next.
        log_probs: float32. Sums so far.
        lengths: int32. Tokens without the end token.
        is_finished: bool.
    """

    tokens: Any
    log_probs: Any
    lengths: Any
    is_finished: Any


class Rules(NamedTuple):
    """What stays the same during one search.

    Fields:
        beam_size, n_best, exponent, early_stopping: see `beam_search`.
        limits: int32 [batch, 1]. Steps that a hypothesis may take.
        forced_lengths: int32 [batch, 1], or () where nothing is forced.
    """

    beam_size: int
    n_best: int
    exponent: float
    early_stopping: bool
    limits: Any
    forced_lengths: Any


class Written(NamedTuple):
    """What the hypotheses at the end of some steps wrote during them.

    Fields:
        tokens: int32 [batch, beam, steps].
        ancestors: int32 [batch, beam]. Their places in the beam before those steps.
    """

    tokens: Any
    ancestors: Any


def writable(log_probs: Any) -> Any:
    """Log-probabilities [..., vocab_size] in which padding and the start token are ruled out.

    No target holds them, but nothing keeps a model that was hardly trained from preferring them.
    """
    return ops.where(ops.arange(log_probs.shape[-1]) >= END_ID, log_probs, DEAD)


def first_beam(batch: Any, beam_size: int) -> Beam:
    """One live hypothesis of each source, which has written nothing."""
    shape = (batch, beam_size)
    first = ops.arange(beam_size)[None, :] == 0
    return Beam(
        tokens=ops.full(shape, START_ID, dtype="int32"),
        log_probs=ops.where(first, 0.0, DEAD) * ops.ones(shape, dtype="float32"),
        lengths=ops.zeros(shape, dtype="int32"),
        is_finished=ops.zeros(shape, dtype="bool"),
    )


def advance(
    model: Any, memory: Any, state: Any, beam: Beam, step: Any, rules: Rules, num_steps: int
) -> tuple[Any, Beam, Any, Written]:
    """Takes steps until all sentences are done, `num_steps` at most.

    Args:
        model: has `step`; see `beam_search`.
        memory, state: from the model.
        beam: the hypotheses.
        step: int32 scalar. Steps taken before.
        rules: of the search.
        num_steps: int.

    Returns:
        step, beam, state: as they came.
        written: what the hypotheses of `beam` wrote meanwhile; padding where no step was taken.
    """
    shape = (ops.shape(beam.tokens)[0], rules.beam_size)
    slots = ops.arange(rules.beam_size, dtype="int32")[None, :]
    written = Written(
        tokens=ops.full((*shape, num_steps), PAD_ID, dtype="int32"),
        ancestors=slots + ops.zeros(shape, dtype="int32"),
    )
    structure, begin, end = state, step, step + num_steps

    def goes_on(step: Any, beam: Any, *_: Any) -> Any:
        done = is_done(Beam(*beam), step, rules)
        return ops.logical_and(step < end, ops.logical_not(ops.all(done)))

    def body(step: Any, beam: Any, carried: Any, written: Any) -> Any:
        beam = Beam(*beam)
        state = keras.tree.pack_sequence_as(structure, carried)
        log_probs, _, state = model.step(beam.tokens, memory, state)
        log_probs = writable(ops.cast(log_probs, "float32"))
        beam, parent = _select(beam, log_probs, step, rules)
        carried = [pick(array, parent) for array in keras.tree.flatten(state)]
        tokens, ancestors = (pick(array, parent) for array in written)
        here = ops.arange(num_steps) == step - begin
        tokens = ops.where(here, beam.tokens[:, :, None], tokens)
        return step + 1, tuple(beam), carried, (tokens, ancestors)

    start = (step, tuple(beam), keras.tree.flatten(state), tuple(written))
    step, beam, carried, written = ops.while_loop(goes_on, body, start)
    state = keras.tree.pack_sequence_as(structure, carried)
    return step, Beam(*beam), state, Written(*written)


def _select(beam: Beam, log_probs: Any, step: Any, rules: Rules) -> tuple[Beam, Any]:
    """Chooses the best successors: the new beam and the parents, int32 [batch, beam]."""
    vocab = log_probs.shape[-1]
    is_end = ops.arange(vocab) == END_ID
    if not isinstance(rules.forced_lengths, tuple):
        log_probs = _force(log_probs, is_end, step >= rules.forced_lengths)
    frozen = ops.logical_or(beam.is_finished, step >= rules.limits)[:, :, None]
    stay = ops.where(is_end, 0.0, DEAD)  # a frozen hypothesis has one successor, itself
    totals = beam.log_probs[:, :, None] + ops.where(frozen, stay, log_probs)
    ranked = totals
    if rules.exponent:
        grown = ops.logical_not(ops.logical_or(frozen, is_end))
        lengths = beam.lengths[:, :, None] + ops.cast(grown, "int32")
        ranked = totals / length_penalty(lengths, rules.exponent)
    flat = (-1, rules.beam_size * vocab)
    _, chosen = ops.top_k(ops.reshape(ranked, flat), rules.beam_size)
    chosen = ops.cast(chosen, "int32")
    parent, token = chosen // vocab, chosen % vocab
    was_frozen = pick(frozen[:, :, 0], parent)
    ends = token == END_ID
    grown = ops.logical_not(ops.logical_or(was_frozen, ends))
    return Beam(
        tokens=ops.where(was_frozen, PAD_ID, token),
        log_probs=pick(ops.reshape(totals, flat), chosen),
        lengths=pick(beam.lengths, parent) + ops.cast(grown, "int32"),
        is_finished=ops.logical_or(
            pick(beam.is_finished, parent),
            ops.logical_and(ends, ops.logical_not(was_frozen)),
        ),
    ), parent


def _force(log_probs: Any, is_end: Any, is_due: Any) -> Any:
    """Allows the end token where it is due, and nowhere else."""
    allowed = ops.equal(is_due[:, :, None], is_end)
    return ops.where(allowed, log_probs, DEAD)


def is_done(beam: Beam, step: Any, rules: Rules) -> Any:
    """Whether a sentence's result can no longer change: bool [batch]."""
    frozen = ops.logical_or(beam.is_finished, step >= rules.limits)
    all_frozen = ops.all(ops.logical_or(frozen, beam.log_probs <= DEAD / 2), axis=1)
    if not rules.early_stopping:
        return all_frozen
    longest = ops.maximum(beam.lengths, rules.limits)
    reachable = beam.log_probs / best_penalty(beam.lengths, longest, rules.exponent)
    reachable = ops.max(ops.where(frozen, DEAD, reachable), axis=1)
    score = beam.log_probs / length_penalty(beam.lengths, rules.exponent)
    finished = ops.where(beam.is_finished, score, DEAD)
    worst = ops.top_k(finished, rules.n_best)[0][:, -1]
    return ops.logical_or(all_frozen, worst > reachable)


def trace(chunks: Written) -> Any:
    """What the hypotheses of the last beam wrote, from the first step on.

    Args:
        chunks: int32 [chunks, batch, beam, steps] and [chunks, batch, beam], one after the other.

    Returns:
        int32 [batch, beam, chunks * steps].
    """
    num_chunks, batch, beam_size, steps = ops.shape(chunks.tokens)

    def back(index: Any, slots: Any, traced: Any) -> Any:
        tokens = pick(ops.take(chunks.tokens, index, axis=0), slots)
        here = (ops.arange(num_chunks) == index)[None, None, :, None]
        traced = ops.where(here, tokens[:, :, None], traced)
        return index - 1, pick(ops.take(chunks.ancestors, index, axis=0), slots), traced

    slots = ops.arange(beam_size, dtype="int32") + ops.zeros((batch, beam_size), dtype="int32")
    traced = ops.full((batch, beam_size, num_chunks, steps), PAD_ID, dtype="int32")
    start = (ops.cast(num_chunks, "int32") - 1, slots, traced)
    traced = ops.while_loop(lambda index, *_: index >= 0, back, start)[2]
    return ops.reshape(traced, (batch, beam_size, num_chunks * steps))

"""Batched beam search in the graph."""

from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.decoding import for_decoding
from seq2seq_memattn.search.follow import follow
from seq2seq_memattn.search.penalties import best_penalty, length_penalty
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID

CHUNK = 32  # steps after which what was written is put away
DEAD = -1e30  # log-probability of what must not be chosen; finite, so that sums stay numbers


class BeamResult(NamedTuple):
    """The best hypotheses of each source, best first.

    Fields:
        tokens: int32 [batch, n_best, max_length]. Ends with the end token, then padding.
        log_probs: float32 [batch, n_best]. Sums over tokens, the end token included.
        normalised_log_probs: float32 [batch, n_best]. After the length penalty.
        lengths: int32 [batch, n_best]. Tokens without the end token.
        is_finished: bool [batch, n_best]. False where the limit cut a hypothesis.
        alignments: float [batch, n_best, max_length, source_length], or () if not asked for.
        scores: float [batch, n_best, max_length, rows], or () if not asked for.
        memory: the memory record, or () if not asked for.
        positions_scored: float32 scalar: encoder states scored per step, mean over the steps of
            the hypotheses returned; or () if not asked for.
    """

    tokens: Any
    log_probs: Any
    normalised_log_probs: Any
    lengths: Any
    is_finished: Any
    alignments: Any = ()
    scores: Any = ()
    memory: Any = ()
    positions_scored: Any = ()


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


def beam_search(
    model: Any,
    source: Any,
    beam_size: int = 10,
    n_best: int = 1,
    length_penalty_exponent: float = 0.0,
    max_length: Any = None,
    early_stopping: bool = True,
    forced_lengths: Any = None,
    return_alignments: bool = False,
) -> BeamResult:
    """Finds the most probable targets.

    Source: google/seq2seq, `inference/beam_search.py`: successors are the best of beam x
    vocabulary, finished hypotheses are frozen and stay in the beam. A sentence ends when its
    n_best finished hypotheses score above what any live one can still reach; the search ends
    when all have.

    Args:
        model: `Seq2Seq`, or anything with `start(source, num_queries)` and
            `step(tokens, memory, state)`.
        source: int32 [batch, source_length], ending with the end token, then padding.
        beam_size: int > 0. Hypotheses kept per source.
        n_best: int in 1..beam_size. Hypotheses returned per source.
        length_penalty_exponent: float. See `length_penalty`.
        max_length: int, or int32 [batch]. Steps a hypothesis may take, end token included.
            None: twice the source's length and 10 more, for each source.
        early_stopping: bool. False runs every sentence to its limit or until its whole beam is
            finished; the result is the same.
        forced_lengths: int32 [batch] or None. Forces every hypothesis to this many tokens
            before the end token: for timing untrained weights.
        return_alignments: bool. Whether to return alignments, scores, memory and
            positions_scored.

    Returns:
        `BeamResult`.

    Raises:
        ValueError: if `beam_size` or `n_best` is out of range; under `jax.jit`, if `max_length` is
            an array or lengths are forced.
    """
    check_sizes(beam_size, n_best)
    model = for_decoding(model, beam_size)
    source = ops.convert_to_tensor(source, dtype="int32")
    limits, num_steps = step_limits(source, max_length, forced_lengths)
    forced = () if forced_lengths is None else ops.cast(forced_lengths, "int32")[:, None]
    rules = Rules(
        beam_size, n_best, length_penalty_exponent, early_stopping, limits[:, None], forced
    )
    memory, state = model.start(source, beam_size)
    beam, chunks = _search(model, memory, state, rules, num_steps, ops.shape(source)[0])
    result = best(beam, trace(chunks)[:, :, :num_steps], rules)
    if not return_alignments:
        return result
    taken = result.lengths + ops.cast(result.is_finished, "int32")
    scores, alignments, positions = follow(model, source, result.tokens, taken)
    return result._replace(
        alignments=alignments, scores=scores, memory=memory.attention, positions_scored=positions
    )


def check_sizes(beam_size: int, n_best: int) -> None:
    """Raises ValueError if `beam_size` or `n_best` of `beam_search` is out of range."""
    if beam_size < 1:
        raise ValueError(f"`beam_size` must be positive; got {beam_size}.")
    if not 1 <= n_best <= beam_size:
        raise ValueError(f"`n_best` must be in 1..{beam_size}, the beam size; got {n_best}.")


def default_limit(source_length: Any) -> Any:
    """Steps that a hypothesis may take if nothing is said; of ints or arrays of them."""
    return 2 * source_length + 10


def step_limits(source: Any, max_length: Any, forced_lengths: Any) -> tuple[Any, Any]:
    """How many steps each sentence may take: int32 [batch], and the most of them, a scalar."""
    if forced_lengths is not None:
        limits = ops.cast(forced_lengths, "int32") + 1
    elif max_length is None:
        lengths = ops.sum(ops.cast(ops.not_equal(source, PAD_ID), "int32"), axis=1)
        limits = default_limit(lengths)
    else:
        limits = ops.zeros_like(source[:, 0]) + ops.cast(max_length, "int32")
        if isinstance(max_length, int):
            return limits, max_length
    if keras.backend.backend() != "jax":
        return limits, ops.max(limits)
    import jax

    # JAX's loops need a size that is known ahead; a traced limit has none.
    if not isinstance(limits, jax.core.Tracer):
        return limits, int(ops.max(limits))
    if forced_lengths is None and max_length is None:
        return limits, default_limit(source.shape[1])
    raise ValueError("Under jax.jit `max_length` must be an int, and lengths cannot be forced.")


def writable(log_probs: Any) -> Any:
    """Log-probabilities [..., vocab_size] in which padding and the start token are ruled out.

    No target holds them, but nothing keeps a model that was hardly trained from preferring them.
    """
    return ops.where(ops.arange(log_probs.shape[-1]) >= END_ID, log_probs, DEAD)


def _search(
    model: Any, memory: Any, state: Any, rules: Rules, num_steps: Any, batch: Any
) -> tuple[Beam, Written]:
    """The whole search, in chunks: the last beam, and what was written, [chunks, ...]."""
    num_chunks = -(-num_steps // CHUNK)
    shape = (num_chunks, batch, rules.beam_size)
    slots = ops.arange(rules.beam_size, dtype="int32")
    tokens = ops.full((*shape, CHUNK), PAD_ID, dtype="int32")
    ancestors = slots + ops.zeros(shape, dtype="int32")
    structure = state

    def goes_on(step: Any, beam: Any, *_: Any) -> Any:
        done = is_done(Beam(*beam), step, rules)
        return ops.logical_and(step < num_steps, ops.logical_not(ops.all(done)))

    def body(step: Any, beam: Any, carried: Any, tokens: Any, ancestors: Any) -> Any:
        state = keras.tree.pack_sequence_as(structure, carried)
        here = ops.arange(num_chunks) == step // CHUNK
        step, beam, state, written = advance(model, memory, state, Beam(*beam), step, rules, CHUNK)
        tokens = ops.where(here[:, None, None, None], written.tokens[None], tokens)
        ancestors = ops.where(here[:, None, None], written.ancestors[None], ancestors)
        return step, tuple(beam), keras.tree.flatten(state), tokens, ancestors

    beam = first_beam(batch, rules.beam_size)
    zero = ops.zeros((), dtype="int32")
    start = (zero, tuple(beam), keras.tree.flatten(state), tokens, ancestors)
    _, beam, _, tokens, ancestors = ops.while_loop(goes_on, body, start)
    return Beam(*beam), Written(tokens, ancestors)


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
        carried = [_pick(array, parent) for array in keras.tree.flatten(state)]
        tokens, ancestors = (_pick(array, parent) for array in written)
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
    was_frozen = _pick(frozen[:, :, 0], parent)
    ends = token == END_ID
    grown = ops.logical_not(ops.logical_or(was_frozen, ends))
    return Beam(
        tokens=ops.where(was_frozen, PAD_ID, token),
        log_probs=_pick(ops.reshape(totals, flat), chosen),
        lengths=_pick(beam.lengths, parent) + ops.cast(grown, "int32"),
        is_finished=ops.logical_or(
            _pick(beam.is_finished, parent),
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
        tokens = _pick(ops.take(chunks.tokens, index, axis=0), slots)
        here = (ops.arange(num_chunks) == index)[None, None, :, None]
        traced = ops.where(here, tokens[:, :, None], traced)
        return index - 1, _pick(ops.take(chunks.ancestors, index, axis=0), slots), traced

    slots = ops.arange(beam_size, dtype="int32") + ops.zeros((batch, beam_size), dtype="int32")
    traced = ops.full((batch, beam_size, num_chunks, steps), PAD_ID, dtype="int32")
    start = (ops.cast(num_chunks, "int32") - 1, slots, traced)
    traced = ops.while_loop(lambda index, *_: index >= 0, back, start)[2]
    return ops.reshape(traced, (batch, beam_size, num_chunks * steps))


def best(beam: Beam, tokens: Any, rules: Rules) -> BeamResult:
    """The n_best of the last beam.

    Args:
        beam: the last one.
        tokens: int32 [batch, beam, num_steps]. What its hypotheses wrote.
        rules: of the search.
    """
    ranked = beam.log_probs / length_penalty(beam.lengths, rules.exponent)
    normalised, order = ops.top_k(ranked, rules.n_best)
    order = ops.cast(order, "int32")
    return BeamResult(
        tokens=_pick(tokens, order),
        log_probs=_pick(beam.log_probs, order),
        normalised_log_probs=normalised,
        lengths=_pick(beam.lengths, order),
        is_finished=_pick(beam.is_finished, order),
    )


def _pick(array: Any, index: Any) -> Any:
    """[batch, m, ...], [batch, n] -> [batch, n, ...].

    As `take_along_axis`, which takes an array of indices as large as its result and on TensorFlow
    some 35 operations.
    """
    batch, width, *rest = ops.shape(array)
    rows = ops.reshape(ops.arange(batch, dtype="int32")[:, None] * width + index, (-1,))
    flat = ops.reshape(array, (batch * width, *rest))
    return ops.reshape(ops.take(flat, rows, axis=0), (batch, index.shape[1], *rest))

"""Batched beam search in the graph."""

from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.compute.rows import batch_gather
from seq2seq_memattn.search.follow import follow
from seq2seq_memattn.search.limits import check_sizes, step_limits
from seq2seq_memattn.search.penalties import length_penalty
from seq2seq_memattn.search.prepared import SearchMemory, for_decoding
from seq2seq_memattn.search.step import Beam, Rules, Written, advance, first_beam, is_done, trace
from seq2seq_memattn.vocabulary import PAD_ID

CHUNK = 32  # steps after which what was written is put away


class BeamResult(NamedTuple):
    """The best hypotheses of each source, best first.

    Fields:
        tokens: int32 [batch, n_best, max_length]. Ends with the end token, then padding.
        log_probs: float32 [batch, n_best]. Sums over tokens, the end token included.
        normalised_log_probs: float32 [batch, n_best]. After the length penalty.
        lengths: int32 [batch, n_best]. Tokens without the end token.
        is_finished: bool [batch, n_best]. False where the limit cut a hypothesis.
        alignments: float [batch, n_best, max_length, source_length], or () if not asked for.
        scores: float [batch, n_best, max_length, rows], or () if not asked for, or if the
            attention's are no tensor.
        memory: the attention's memory record (what `start` returns, of a model that is no
            `Seq2Seq`), or () if not asked for or searched by `ChunkedSearch`.
        positions_scored: float32 [batch, n_best]: encoder states scored per step, mean over the
            steps of each hypothesis; or () if not asked for.
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

    @property
    def steps(self) -> Any:
        """Steps that each hypothesis took, its end token included: int32 [batch, n_best]."""
        return self.lengths + ops.cast(self.is_finished, "int32")


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
            `step(tokens, memory, state)`, a `keras.Model` or not; see `DecodingModel` for what
            they take and return. Alignments need its `alignment` and `positions_scored` too.
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
        ValueError: if `beam_size` or `n_best` is out of range, or the model has no `start` and
            `step`; under `jax.jit`, if `max_length` is an array or lengths are forced.
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
    scores, alignments, positions = follow(model, memory, state, result.tokens, result.steps)
    record = memory.attention if isinstance(memory, SearchMemory) else memory
    return result._replace(
        alignments=alignments, scores=scores, memory=record, positions_scored=positions
    )


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
        tokens=batch_gather(tokens, order),
        log_probs=batch_gather(beam.log_probs, order),
        normalised_log_probs=normalised,
        lengths=batch_gather(beam.lengths, order),
        is_finished=batch_gather(beam.is_finished, order),
    )

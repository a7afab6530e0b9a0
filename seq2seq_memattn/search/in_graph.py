"""A whole beam search, or sampling, in one graph: from the sources to the best hypotheses."""

from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.compute.backend import has_static_shapes
from seq2seq_memattn.compute.rows import batch_gather
from seq2seq_memattn.search.chunks import (
    Compaction,
    Results,
    Unfinished,
    drop_done,
    first_results,
    keep_all,
    search_by_chunks,
)
from seq2seq_memattn.search.eager import Inputs
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.search.prepare import Prepared, pad_id
from seq2seq_memattn.search.rules import Rules, SourceRules, step_limits
from seq2seq_memattn.search.scores import score
from seq2seq_memattn.search.step import extend_beam, first_state, trace


class BeamResult(NamedTuple):
    """The best hypotheses of each source, best first.

    Fields:
        tokens: int32 [batch, n_best, max_length]. Ends with the end token, then padding.
        log_probs: float32 [batch, n_best]. Sums over tokens, in nats, the end token included.
        normalised_log_probs: float32 [batch, n_best]. The scores that rank the hypotheses: the
            log-probabilities after the length penalty, with length reward and coverage penalty.
        lengths: int32 [batch, n_best]. Tokens without the end token.
        is_finished: bool [batch, n_best]. False where the limit cut a hypothesis.
        alignments: float [batch, n_best, max_length, source_length], or () if not requested.
        scores: float [batch, n_best, max_length, rows], or () if not requested or if the
            attention's scores are not a tensor.
        memory: the attention's memory record (for an `Ensemble`, a tuple with that of each model;
            for a model of another class, the memory from its `start`), or () if not requested.
        positions_scored: float32 [batch, n_best]. Mean number of encoder states scored per step of
            each hypothesis, or () if not requested.
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


def search_sources(
    model: Any, inputs: Inputs, options: SearchOptions, seeds: Any = ()
) -> tuple[Any, Any, BeamResult]:
    """Encodes sources and runs `search_in_graph`.

    Args:
        model: what `prepare` returned.
        inputs: `Inputs`, checked.
        options: `SearchOptions`.
        seeds: uint32 [batch, 2], for sampling.

    Returns:
        memory, state: from the model's `start`.
        result: `BeamResult`, with search's tokens, see `Preparable`, in place of ids.
    """
    source, pad = inputs.source, pad_id(model)
    limits, num_steps = step_limits(
        source, inputs.max_length, pad, inputs.prefix, inputs.most_steps
    )
    # Constraints are part of a graph only if they are used.
    least = inputs.min_length
    has_least = least is not None and not (isinstance(least, int) and least == 0)
    sources = SourceRules(
        limits=limits[:, None],
        least=(ops.zeros_like(limits) + least)[:, None] if has_least else (),
        prefix=inputs.prefix,
        is_token=ops.not_equal(source, pad) if options.coverage_penalty else (),
        seeds=seeds,
    )
    rules = Rules(options, sources)
    memory, state = model.start(source, options.beam_size)
    drops = isinstance(model, Prepared) and not has_static_shapes() and source.shape[0] != 1
    compaction = drop_done() if drops else keep_all()
    found = search_in_graph(model, memory, state, rules, num_steps, compaction)
    return memory, state, found


def search_in_graph(
    model: Any, memory: Any, state: Any, rules: Rules, num_steps: Any, compaction: Compaction
) -> BeamResult:
    """Runs `beam_search` or `sample` from the model's first state on.

    Args:
        model: `SearchedModel`; a prepared one if finished sentences are removed.
        memory, state: from the model's `start`.
        rules: the rules of the search.
        num_steps: int or int32 scalar. The maximum number of steps.
        compaction: the policy for finished sentences.
    """
    # If no sentences are removed, the memory does not change and need not be a loop variable.
    carried = read_in_steps(model, memory, rules.options) if compaction.drops else ()
    batch = ops.shape(rules.sources.limits)[0]
    found = first_results(batch, rules.options, num_steps, compaction.chunk)
    state = first_state(state, rules, num_steps)
    unfinished = Unfinished(ops.arange(batch, dtype="int32"), carried, state, found.beam)

    def extend(unfinished: Unfinished, step: Any) -> tuple[Any, ...]:
        read = unfinished.memory if compaction.drops else memory
        sources = keras.tree.map_structure(
            lambda array: ops.take(array, unfinished.rows, axis=0), rules.sources
        )
        left = rules._replace(sources=sources)
        return extend_beam(
            model, read, unfinished.state, unfinished.beam, step, left, compaction.chunk
        )

    found = search_by_chunks(extend, unfinished, found, num_steps, compaction)
    return best(found, num_steps, rules.options)


def read_in_steps(model: Any, memory: Any, options: SearchOptions) -> Any:
    """The part of a prepared model's memory that the steps of a search read."""
    return memory if options.coverage_penalty else model.without_sources(memory)


def best(found: Results, num_steps: Any, options: SearchOptions) -> BeamResult:
    """The n_best of each sentence, with the tokens of the first `num_steps`; None: of all steps.

    Samples stay in their order.
    """
    beam, tokens = found.beam, trace(found.written)[:, :, :num_steps]
    if options.sampling is not None:
        return BeamResult(tokens, beam.log_probs, beam.log_probs, beam.lengths, beam.is_finished)
    ranked = score(beam.log_probs, beam.lengths, beam.penalty, options)
    normalised, order = ops.top_k(ranked, options.n_best)
    order = ops.cast(order, "int32")
    return BeamResult(
        tokens=batch_gather(tokens, order),
        log_probs=batch_gather(beam.log_probs, order),
        normalised_log_probs=normalised,
        lengths=batch_gather(beam.lengths, order),
        is_finished=batch_gather(beam.is_finished, order),
    )

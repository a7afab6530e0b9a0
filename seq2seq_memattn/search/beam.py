"""Batched beam search in the graph."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from seq2seq_memattn.checks import check_number, plain_ids
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
from seq2seq_memattn.search.eager import Inputs, call_compiled
from seq2seq_memattn.search.ensemble import members
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.search.prepare import OURS, Prepared, pad_id, prepare, to_ids
from seq2seq_memattn.search.prepared import SearchMemory
from seq2seq_memattn.search.protocol import AlignedModel
from seq2seq_memattn.search.replay import replay_attention
from seq2seq_memattn.search.rules import Rules, SourceRules, step_limits
from seq2seq_memattn.search.scores import score
from seq2seq_memattn.search.step import extend_beam, first_state, trace
from seq2seq_memattn.vocabulary import END_ID


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
        positions_scored: float32 [batch, n_best]. Encoder states scored per step, mean over the
            steps of each hypothesis; or () if not requested.
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
    return_alignments: bool = False,
    *,
    min_length: Any = None,
    length_reward: float = 0.0,
    coverage_penalty: float = 0.0,
    no_repeat_ngram: int = 0,
    banned: Sequence[int] = (),
    prefix: Any = None,
) -> BeamResult:
    """Beam search: finds the most probable targets of each source.

    Source: google/seq2seq, `inference/beam_search.py`: successors are the best of beam x
    vocabulary, finished hypotheses are frozen and stay in the beam. A sentence is done when its
    n_best finished hypotheses score above what any live hypothesis can still reach. The search ends
    when all sentences are done.

    Called in eager mode, a search with a `Seq2Seq`, a `Searchable` or an `Ensemble` is compiled:
    once for each choice of options, and on JAX also for each shape of `source`. A search with
    another model is not compiled: call it inside a `tf.function` or `jax.jit`, where it is many
    times as fast.

    Constraints rule tokens out after the softmax: the log-probabilities of the others stay as they
    are. Where constraints leave fewer hypotheses than `n_best`, those that fill the result have
    log-probabilities below -1e29, and their tokens have no meaning.

    Args:
        model: `Seq2Seq`, `Searchable`, `Ensemble`, or anything with `start(source, num_queries)`
            and `step(tokens, memory, state)`, a `keras.Model` or not; see `SearchedModel` for what
            they take and return, and `AlignedModel` for what alignments need besides.
        source: int32 [batch, source_length]. Ids as in training, then padding. Models of
            `memattn train` expect the end token before the padding.
        beam_size: int > 0. Hypotheses kept per source.
        n_best: int in 1..beam_size. Hypotheses returned per source.
        length_penalty_exponent: float. Exponent of the length penalty of Wu et al. (2016), equation
            14: log-probabilities are divided by ((5 + length) / 6) ** exponent. 0: no penalty.
        max_length: int, or int32 [batch]. Steps a hypothesis may take, end token included.
            None: twice the source's length and 10 more, for each source, after its prefix.
        early_stopping: bool. False runs every sentence to its limit or until its whole beam is
            finished; the result is the same.
        return_alignments: bool. Whether to return alignments, scores, memory and
            positions_scored.
        min_length: int or int32 [batch]. Tokens that a hypothesis has before its end token, unless
            its limit is lower.
        length_reward: float in -100..100. Added to the score for each token, without the end token.
        coverage_penalty: float in 0..100. Weight of the coverage penalty of Wu et al. (2016),
            equation 14, which prefers targets whose attention has read every source position:
            weight * sum_i log(min(sum_j p_ij, 1)), for the alignment p_ij of step j to position i,
            is added to the score. The model must be an `AlignedModel` with one encoder output per
            source id, and its alignments shares of the source, so no linear attention. The search
            computes an alignment at every step, so its time then grows with the source.
        no_repeat_ngram: int. No hypothesis has a sequence of this many tokens twice; 0: no rule.
        banned: ids that are never written, such as that of the unknown token.
        prefix: int32 [batch, n], or None. The first tokens of each target, without the start token,
            then padding, with the id that pads sources. Hypotheses and their log-probabilities
            include the prefix. Inside a prefix, the other constraints have no effect.

    Returns:
        `BeamResult`.

    Raises:
        ValueError: if an option is not a number of its kind or is out of range; if `source` has
            another rank or, for our own models, an id outside the vocabulary; if a prefix has a
            start or end token, or is longer than `max_length`; if `banned` has the id of padding,
            start or end; if the model lacks `start` and `step`, or with `return_alignments` or
            `coverage_penalty` the other methods of `AlignedModel`; under `jax.jit`, if
            `max_length` is an array.

    Example:
    >>> import numpy as np
    >>> from seq2seq_memattn import ModelConfig, Seq2Seq, beam_search
    >>> model = Seq2Seq(ModelConfig(source_vocab_size=9, target_vocab_size=9))
    >>> source = np.array([[5, 3, 2], [4, 2, 0]])  # symbols, the end token 2, padding
    >>> found = beam_search(model, source, beam_size=4, n_best=2, max_length=6)
    >>> tuple(found.tokens.shape), tuple(found.log_probs.shape)
    ((2, 2, 6), (2, 2))
    """
    check_number("length_penalty_exponent", length_penalty_exponent)
    options = SearchOptions(
        beam_size,
        n_best,
        length_penalty_exponent,
        length_reward,
        coverage_penalty,
        no_repeat_ngram,
        banned_tokens(model, banned),
        early_stopping,
    )
    inputs = Inputs(source, max_length, min_length, prefix)
    return call_compiled(_beam_search, model, inputs, (options, return_alignments))


def _beam_search(
    model: Any, inputs: Inputs, options: SearchOptions, return_alignments: bool
) -> BeamResult:
    given, model = model, prepare(model, options.beam_size)
    if return_alignments:
        check_aligned("return_alignments", model)
    if options.coverage_penalty:
        check_coverage(given)
    memory, state, result = search_sources(model, inputs, options)
    if return_alignments:
        scores, alignments, positions = replay_attention(
            model, memory, state, result.tokens, result.steps
        )
        result = result._replace(
            alignments=alignments,
            scores=scores,
            memory=_attention_record(memory),
            positions_scored=positions,
        )
    return result._replace(tokens=to_ids(model, result.tokens))


def check_aligned(option: str, model: Any) -> None:
    """Raises ValueError if an option needs the alignments of a model that has none."""
    if isinstance(model, AlignedModel):
        return
    methods = ("alignment", "positions_scored")
    missing = ", ".join(f"`{name}`" for name in methods if not hasattr(model, name))
    raise ValueError(
        f"`{option}`: expected a model with methods `alignment(scores, memory)` and "
        f"`positions_scored(scores, memory)`; got {type(model).__name__}, which lacks {missing}."
    )


def check_coverage(model: Any) -> None:
    """Raises ValueError if a coverage penalty cannot use the alignments of a model."""
    if not isinstance(model, OURS):
        check_aligned("coverage_penalty", model)
        return
    for attention in (member.cell.attention for member in members(model)):
        if not attention.has_shares:
            raise ValueError(
                "`coverage_penalty`: expected an attention whose alignments are shares of the "
                f"source; got {type(attention).__name__}."
            )


def banned_tokens(model: Any, banned: Sequence[int]) -> tuple[int, ...]:
    """Search's tokens for banned ids, sorted; ValueError if one must not be banned."""
    tokens = sorted(set(plain_ids("banned", banned)))
    if tokens and isinstance(model, OURS):
        size = model.vocab_size
        if tokens[-1] >= size:
            raise ValueError(f"`banned`: expected ids in 0..{size - 1}; got {tokens[-1]}.")
        ids = model.to_ids(np.arange(model.num_tokens))
        tokens = np.flatnonzero(np.isin(ids, tokens)).tolist()
    if tokens and tokens[0] <= END_ID:
        raise ValueError("`banned`: expected no id of padding, start token or end token.")
    return tuple(tokens)


def _attention_record(memory: Any) -> Any:
    if isinstance(memory, SearchMemory):
        return memory.attention
    is_ensemble = type(memory) is tuple and all(isinstance(one, SearchMemory) for one in memory)
    return tuple(part.attention for part in memory) if is_ensemble else memory


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
        result: `BeamResult`, with search's tokens in place of ids.
    """
    source, pad = inputs.source, pad_id(model)
    limits, num_steps = step_limits(source, inputs.max_length, pad, inputs.prefix)
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
        num_steps: int or int32 scalar. The most steps.
        compaction: the policy for finished sentences.
    """
    # Memory that stays whole need not be one of the loop's variables.
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
    """The n_best of each sentence, with the tokens of the first `num_steps` steps; None: all.

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

"""Batched beam search in the graph."""

from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.checks import check_number
from seq2seq_memattn.compute.backend import has_static_shapes
from seq2seq_memattn.compute.rows import batch_gather
from seq2seq_memattn.search.chunks import (
    Compaction,
    Found,
    Going,
    drop_done,
    first_found,
    keep_all,
    search_by_chunks,
)
from seq2seq_memattn.search.eager import call_compiled
from seq2seq_memattn.search.prepared import PreparedModel, SearchMemory, pad_id, prepare, written
from seq2seq_memattn.search.protocol import AlignedModel
from seq2seq_memattn.search.replay import replay_attention
from seq2seq_memattn.search.rules import Rules, check_sizes, length_penalty, step_limits
from seq2seq_memattn.search.step import extend_beam, is_done, trace


class BeamResult(NamedTuple):
    """The best hypotheses of each source, best first.

    Fields:
        tokens: int32 [batch, n_best, max_length]. Ends with the end token, then padding.
        log_probs: float32 [batch, n_best]. Sums over tokens, in nats, the end token included.
        normalised_log_probs: float32 [batch, n_best]. After the length penalty.
        lengths: int32 [batch, n_best]. Tokens without the end token.
        is_finished: bool [batch, n_best]. False where the limit cut a hypothesis.
        alignments: float [batch, n_best, max_length, source_length], or () if not requested.
        scores: float [batch, n_best, max_length, rows], or () if not requested or if the
            attention's scores are not a tensor.
        memory: the attention's memory record (for a model of another class, the memory from its
            `start`), or () if not requested.
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
) -> BeamResult:
    """Beam search: finds the most probable targets of each source.

    Source: google/seq2seq, `inference/beam_search.py`: successors are the best of beam x
    vocabulary, finished hypotheses are frozen and stay in the beam. A sentence is done when its
    n_best finished hypotheses score above what any live hypothesis can still reach. The search ends
    when all sentences are done.

    Called in eager mode, a search with a `Seq2Seq` or a `Searchable` is compiled: once for each
    choice of options, and on JAX also for each shape of `source`. A search with another model is
    not compiled: call it inside a `tf.function` or `jax.jit`, where it is many times as fast.

    Args:
        model: `Seq2Seq`, `Searchable`, or anything with `start(source, num_queries)` and
            `step(tokens, memory, state)`, a `keras.Model` or not; see `SearchedModel` for what
            they take and return, and `AlignedModel` for what alignments need besides.
        source: int32 [batch, source_length]. Ids as in training, then padding. Models of
            `memattn train` expect the end token before the padding.
        beam_size: int > 0. Hypotheses kept per source.
        n_best: int in 1..beam_size. Hypotheses returned per source.
        length_penalty_exponent: float. Exponent of the length penalty of Wu et al. (2016), equation
            14: log-probabilities are divided by ((5 + length) / 6) ** exponent. 0: no penalty.
        max_length: int, or int32 [batch]. Steps a hypothesis may take, end token included.
            None: twice the source's length and 10 more, for each source.
        early_stopping: bool. False runs every sentence to its limit or until its whole beam is
            finished; the result is the same.
        return_alignments: bool. Whether to return alignments, scores, memory and
            positions_scored.

    Returns:
        `BeamResult`.

    Raises:
        ValueError: if an option is not a number of its kind or is out of range; if `source` has
            another rank or, for a `Seq2Seq` or a `Searchable`, an id outside the vocabulary; if the
            model lacks `start` and `step`, or with `return_alignments` the other methods of
            `AlignedModel`; under `jax.jit`, if `max_length` is an array.

    Example:
    >>> import numpy as np
    >>> from seq2seq_memattn import ModelConfig, Seq2Seq, beam_search
    >>> model = Seq2Seq(ModelConfig(source_vocab_size=9, target_vocab_size=9))
    >>> source = np.array([[5, 3, 2], [4, 2, 0]])  # symbols, the end token 2, padding
    >>> found = beam_search(model, source, beam_size=4, n_best=2, max_length=6)
    >>> tuple(found.tokens.shape), tuple(found.log_probs.shape)
    ((2, 2, 6), (2, 2))
    """
    check_sizes(beam_size, n_best)
    check_number("length_penalty_exponent", length_penalty_exponent)
    exponent = float(length_penalty_exponent)
    options = (int(beam_size), int(n_best), exponent, early_stopping, return_alignments)
    return call_compiled(_beam_search, model, (source,), max_length, options)


def _beam_search(
    model: Any,
    source: Any,
    max_length: Any,
    beam_size: int,
    n_best: int,
    length_penalty_exponent: float,
    early_stopping: bool,
    return_alignments: bool,
) -> BeamResult:
    model = prepare(model, beam_size)
    if return_alignments and not isinstance(model, AlignedModel):
        methods = ("alignment", "positions_scored")
        missing = ", ".join(f"`{name}`" for name in methods if not hasattr(model, name))
        raise ValueError(
            "`return_alignments`: expected a model with methods `alignment(scores, memory)` and "
            f"`positions_scored(scores, memory)`; got {type(model).__name__}, which lacks "
            f"{missing}."
        )
    rules = Rules(beam_size, n_best, length_penalty_exponent, early_stopping, limits=None)
    memory, state, result = search_sources(model, source, max_length, rules)
    if return_alignments:
        scores, alignments, positions = replay_attention(
            model, memory, state, result.tokens, result.steps
        )
        record = memory.attention if isinstance(memory, SearchMemory) else memory
        result = result._replace(
            alignments=alignments, scores=scores, memory=record, positions_scored=positions
        )
    return result._replace(tokens=written(model, result.tokens))


def search_sources(
    model: Any, source: Any, max_length: Any, rules: Rules
) -> tuple[Any, Any, BeamResult]:
    """Encodes sources and runs `search_in_graph`.

    Args:
        model: what `prepare` returned.
        source, max_length: see `beam_search`.
        rules: `Rules`, whose limits are set here.

    Returns:
        memory, state: from the model's `start`.
        result: `BeamResult`, with the token numbers of search in place of ids.
    """
    limits, num_steps = step_limits(source, max_length, pad_id(model))
    memory, state = model.start(source, rules.beam_size)
    drops = isinstance(model, PreparedModel) and not has_static_shapes() and source.shape[0] != 1
    compaction = drop_done() if drops else keep_all()
    rules = rules._replace(limits=limits[:, None])
    found = search_in_graph(model, memory, state, rules, num_steps, compaction)
    return memory, state, found


def search_in_graph(
    model: Any, memory: Any, state: Any, rules: Rules, num_steps: Any, compaction: Compaction
) -> BeamResult:
    """Runs `beam_search` or `sample` from the model's first state on.

    Args:
        model: `SearchedModel`; a `PreparedModel` if finished sentences are removed.
        memory, state: from the model's `start`.
        rules: the rules of the search.
        num_steps: int or int32 scalar. The most steps.
        compaction: the policy for finished sentences.
    """
    # Memory that stays whole need not be one of the loop's variables.
    carried = model.without_sources(memory) if compaction.drops else ()
    batch = ops.shape(rules.limits)[0]
    found = first_found(batch, rules, num_steps, compaction.chunk)
    going = Going(ops.arange(batch, dtype="int32"), carried, state, found.beam)

    def extend(going: Going, step: Any) -> tuple[Any, ...]:
        read = going.memory if compaction.drops else memory
        limits, seeds = keras.tree.map_structure(
            lambda array: ops.take(array, going.rows, axis=0), (rules.limits, rules.seeds)
        )
        own = rules._replace(limits=limits, seeds=seeds)
        taken = extend_beam(model, read, going.state, going.beam, step, own, compaction.chunk)
        return *taken, is_done(taken[1], taken[0], own)

    return best(search_by_chunks(extend, going, found, num_steps, compaction), num_steps, rules)


def best(found: Found, num_steps: Any, rules: Rules) -> BeamResult:
    """The n_best of each sentence, with the tokens of the first `num_steps` steps; None: all.

    Samples stay in their order.
    """
    beam, tokens = found.beam, trace(found.written)[:, :, :num_steps]
    if rules.sampling is not None:
        return BeamResult(tokens, beam.log_probs, beam.log_probs, beam.lengths, beam.is_finished)
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

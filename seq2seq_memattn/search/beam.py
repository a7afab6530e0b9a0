"""Beam search."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from seq2seq_memattn.checks import check_number, plain_ids
from seq2seq_memattn.search.aligned_models import check_aligned, check_coverage
from seq2seq_memattn.search.eager import Inputs, call_compiled
from seq2seq_memattn.search.in_graph import BeamResult, search_sources
from seq2seq_memattn.search.options import MOST_PENALTY, SearchOptions
from seq2seq_memattn.search.prepare import OURS, prepare, to_ids
from seq2seq_memattn.search.prepared import SearchMemory
from seq2seq_memattn.search.replay import replay_attention
from seq2seq_memattn.search.with_xla import search_with_xla
from seq2seq_memattn.vocabulary import END_ID


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
    jit_compile: bool = False,
) -> BeamResult:
    """Beam search: finds the most probable targets of each source.

    Source: google/seq2seq, `inference/beam_search.py`: each step keeps the beam_size best of all
    one-token extensions of the hypotheses. Finished hypotheses are not extended; they keep their
    scores and compete with the extensions. A sentence is done when its n_best finished hypotheses
    score above what any live hypothesis can still reach. The search ends when all sentences are
    done.

    Called in eager mode, a search with a `Seq2Seq`, a `Searchable` or an `Ensemble` is compiled.
    For each combination of options, TensorFlow compiles it for the shapes of the first call, once
    more for all other shapes, and once for other calls with a single source; JAX compiles it for
    each shape. An int `max_length` or `min_length` counts as an option. On JAX, so does the maximum
    of an array `max_length`. A search with another model is not compiled: call it inside a
    `tf.function` or `jax.jit`, where it is many times as fast.

    Constraints exclude tokens after the softmax: the log-probabilities of the other tokens stay as
    they are. If constraints leave fewer hypotheses than `n_best`, the result is filled up with
    entries whose log-probabilities are below -1e29 and whose tokens have no meaning.

    Args:
        model: `Seq2Seq`, `Searchable`, `Ensemble`, or anything with `start(source, num_queries)`
            and `step(tokens, memory, state)`, a `keras.Model` or not; see `SearchedModel` for what
            they take and return, and `AlignedModel` for further methods that alignments require.
        source: int32 [batch, source_length]. Ids as in training, then padding. Models of
            `memattn train` expect the end token before the padding. A `Searchable` whose encoder
            reads features takes these, [batch, ...], and needs a `max_length`.
        beam_size: int > 0. Hypotheses kept per source.
        n_best: int in 1..beam_size. Hypotheses returned per source.
        length_penalty_exponent: float. Exponent of the length penalty of Wu et al. (2016), equation
            14: log-probabilities are divided by ((5 + length) / 6) ** exponent. 0: no penalty.
        max_length: int, or int32 [batch]. Steps a hypothesis may take, end token included. None:
            for each source of ids, twice its length plus 10 steps, plus the length of its prefix.
        early_stopping: bool. False runs every sentence to its limit or until its whole beam is
            finished; the result is the same.
        return_alignments: bool. Whether to return alignments, scores, memory and
            positions_scored.
        min_length: int or int32 [batch]. The minimum number of tokens before the end token, unless
            the limit of a hypothesis is lower.
        length_reward: float in -100..100. Added to the score for each token except the end token.
        coverage_penalty: float in 0..100. Weight of the coverage penalty of Wu et al. (2016),
            equation 14, which prefers targets whose attention has read every source position:
            weight * sum_i log(min(sum_j p_ij, 1)), for the alignment p_ij of step j to position i,
            is added to the score. The model must be an `AlignedModel` with one encoder output per
            source id. Its alignments must be shares of the source, non-negative with a sum of at
            most 1. This excludes `LinearAttention`, `NoAttention`, and `KMemoryAttention` with a
            sigmoid or a softmax over slots. With this penalty, the time of a step grows with the
            length of the source.
        no_repeat_ngram: int. No hypothesis repeats a sequence of this many tokens; 0: no such rule.
        banned: ids that are never written, such as that of the unknown token.
        prefix: int32 [batch, n], or None. The first tokens of each target, without the start token,
            padded at the end with the id that pads sources. Hypotheses and their log-probabilities
            include the prefix. Inside a prefix, the other constraints have no effect.
        jit_compile: bool. Whether XLA compiles the steps. Large batches are then faster, but
            compiling takes a second or more for each new combination of batch size (rounded up),
            limit on steps (rounded up to a multiple of 64) and source length. On TensorFlow, a new
            source length needs no compiling for batches of several sources if the memory has a
            fixed size and there is no coverage penalty. Only in eager mode and with a `Seq2Seq`, a
            `Searchable` or an `Ensemble`; results have no `memory`.

    Returns:
        `BeamResult`.

    Raises:
        ValueError: if a numeric option has the wrong type or is out of range; if `source` has the
            wrong shape or, for our own models, an id outside the vocabulary; with features, if
            `max_length` is None or a coverage penalty is given; if a prefix contains a
            start or end token, or is longer than `max_length`; if `banned` contains the id of
            padding, start or end; if the model lacks `start` and `step` or, with
            `return_alignments` or `coverage_penalty`, the other methods of `AlignedModel`; under
            `jax.jit` or XLA, if `max_length` is an array; with `jit_compile`, inside a graph or if
            the model is not a `Seq2Seq`, a `Searchable` or an `Ensemble`.

    Example:
    >>> import numpy as np
    >>> from seq2seq_memattn import ModelConfig, Seq2Seq, beam_search
    >>> model = Seq2Seq(ModelConfig(source_vocab_size=9, target_vocab_size=9))
    >>> source = np.array([[5, 3, 2], [4, 2, 0]])  # symbols, the end token 2, padding
    >>> found = beam_search(model, source, beam_size=4, n_best=2, max_length=6)
    >>> tuple(found.tokens.shape), tuple(found.log_probs.shape)
    ((2, 2, 6), (2, 2))
    """
    check_number("length_penalty_exponent", length_penalty_exponent, -MOST_PENALTY, MOST_PENALTY)
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
    with_xla = search_with_xla if jit_compile else None
    return call_compiled(_beam_search, model, inputs, (options, return_alignments), with_xla)


def _beam_search(
    model: Any, inputs: Inputs, options: SearchOptions, return_alignments: bool
) -> BeamResult:
    given, model = model, prepare(model, options.beam_size)
    if return_alignments:
        check_aligned("return_alignments", model)
    if options.coverage_penalty:
        check_coverage(given, inputs.source)
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


def banned_tokens(model: Any, banned: Sequence[int]) -> tuple[int, ...]:
    """Search's tokens, see `Preparable`, for banned ids, sorted.

    Raises ValueError if an id must not be banned.
    """
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

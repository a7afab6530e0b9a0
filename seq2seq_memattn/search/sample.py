"""Sampling: draws targets at random from the model's distribution."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.checks import MAX_SEED, check_int, is_int_array
from seq2seq_memattn.search.beam import banned_tokens
from seq2seq_memattn.search.draw import row_seeds
from seq2seq_memattn.search.eager import Inputs, call_compiled
from seq2seq_memattn.search.in_graph import BeamResult, search_sources
from seq2seq_memattn.search.options import Sampling, SearchOptions, samples
from seq2seq_memattn.search.prepare import prepare, to_ids
from seq2seq_memattn.search.with_xla import search_with_xla


class SampleResult(NamedTuple):
    """Targets drawn for each source, not sorted.

    Fields:
        tokens: int32 [batch, num_samples, max_length]. Ends with the end token, then padding.
        log_probs: float32 [batch, num_samples]. Sums over tokens of the model's log-probabilities,
            in nats, end token included, without temperature, top_k and top_p. For the same target,
            they equal those of `beam_search` and, unless products are rounded, of `memattn score`,
            and they can be compared across settings. Unless all settings are the defaults, these
            are not the probabilities with which targets are drawn. Below -1e29 if the constraints
            left no token at some step: the target then breaks one of them.
        lengths: int32 [batch, num_samples]. Tokens without the end token.
        is_finished: bool [batch, num_samples]. False where the limit cut a target.
    """

    tokens: Any
    log_probs: Any
    lengths: Any
    is_finished: Any

    @property
    def steps(self) -> Any:
        """Steps that each target took, its end token included: int32 [batch, num_samples]."""
        return self.lengths + ops.cast(self.is_finished, "int32")


def sample(
    model: Any,
    source: Any,
    num_samples: int = 1,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: Any = None,
    max_length: Any = None,
    *,
    min_length: Any = None,
    no_repeat_ngram: int = 0,
    banned: Sequence[int] = (),
    prefix: Any = None,
    jit_compile: bool = False,
) -> SampleResult:
    """Sampling: draws each next token with the probability that the model gives it.

    The same seed gives the same samples, eager or compiled, on TensorFlow and on JAX. A sample
    depends on the seed, on its source and the row of the source in the batch, and on its own number
    among the samples. It does not depend on padding, on other sources, or on num_samples. Rounding
    is the exception: logits computed in two ways differ in their last digits, which in rare cases
    changes a token.

    Source: Holtzman et al. (2020), section 3.1 (top-p); Fan et al. (2018), section 5.4 (top-k).

    Args:
        model, source, max_length: see `beam_search`.
        num_samples: int > 0. Targets drawn for each source. They are drawn independently, so the
            same target may occur twice.
        temperature: float in 1e-4..1e4. Divides the logits. Below 1, probable tokens become more
            probable.
        top_k: int >= 0. Only the top_k most probable tokens can be drawn; 0: all. With 1, samples
            are those of `greedy_search`, except among equally probable tokens.
        top_p: float in (0, 1]. Of the tokens that top_k leaves, only the most probable ones can be
            drawn: the smallest set that has this share of their probability. Of equally probable
            tokens, all or none are in the set.
        seed: int in 0..2**31-1, or an int32 scalar, such as an argument of a compiled function.
            None: a new seed at each call, drawn by Keras's global generator, which
            `keras.utils.set_random_seed` sets. Under `jax.jit`, Keras refuses to draw from this
            generator, so a seed must be given.
        min_length, no_repeat_ngram, banned, prefix: see `beam_search`. Tokens are drawn among those
            that these constraints leave.
        jit_compile: see `beam_search`.

    Returns:
        `SampleResult`. Padding and the start token are never drawn.

    Raises:
        ValueError: if an argument is out of range or has the wrong type or rank; if sources have
            features and `max_length` is None; for the prefixes and banned ids that `beam_search`
            refuses; if the model has no `start` and `step`; under `jax.jit` or XLA, if `max_length`
            is an array; under `jax.jit`, if `seed` is None; with `jit_compile`, inside a graph or
            if the model is not a `Seq2Seq`, a `Searchable` or an `Ensemble`.

    Example:
    >>> import numpy as np
    >>> from seq2seq_memattn import ModelConfig, Seq2Seq, sample
    >>> model = Seq2Seq(ModelConfig(source_vocab_size=9, target_vocab_size=9))
    >>> source = np.array([[5, 3, 2], [4, 2, 0]])
    >>> tuple(sample(model, source, num_samples=4, seed=1, max_length=6).tokens.shape)
    (2, 4, 6)
    """
    ngram, tokens = no_repeat_ngram, banned_tokens(model, banned)
    sampling = Sampling(temperature, top_k, top_p)
    options = samples(num_samples, sampling, no_repeat_ngram=ngram, banned=tokens)
    if seed is None:
        seed = keras.random.randint((), 0, MAX_SEED, dtype="int32")
    elif not is_int_array(seed, most_axes=0):
        check_int("seed", seed, 0, MAX_SEED)
    inputs = Inputs(source, max_length, min_length, prefix, seed)
    with_xla = search_with_xla if jit_compile else None
    found = call_compiled(_sample, model, inputs, (options,), with_xla)
    return SampleResult(*(getattr(found, name) for name in SampleResult._fields))


def _sample(model: Any, inputs: Inputs, options: SearchOptions) -> BeamResult:
    model = prepare(model, options.beam_size)
    rows = ops.arange(ops.shape(inputs.source)[0], dtype="int32")
    *_, found = search_sources(model, inputs, options, row_seeds(inputs.seed, rows))
    return found._replace(tokens=to_ids(model, found.tokens))

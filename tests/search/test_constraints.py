"""Constraints and added scores, against the reference search and exhaustive enumeration."""

import functools
import itertools
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.runs.pair_scorer import PairScorer
from seq2seq_memattn.search.batch_decoder import BatchDecoder
from seq2seq_memattn.search.beam import beam_search
from seq2seq_memattn.search.constraints import repeating
from seq2seq_memattn.search.options import Lengths, SearchOptions
from seq2seq_memattn.search.rules import limits_of
from seq2seq_memattn.search.sample import sample
from seq2seq_memattn.vocabulary import END_ID, NUM_SPECIAL_IDS, PAD_ID, START_ID
from tests.errors import refused
from tests.marks import quick, slow
from tests.reference import beam_search as reference
from tests.search.models import (
    SOURCE_LENGTH,
    PrefixModel,
    assert_same_search,
    padded,
    random_tables,
    small_model,
    sources_of,
)
from tests.search.test_beam import as_arrays, assert_equals_reference
from tests.tolerances import as_array, assert_close

A, B, C, D = range(3, 7)  # ids of symbols
LIMITS = np.array([6, 1, 5, 6, 3, 6] * 3)
END_BIASES = np.repeat([-np.inf, 0.0, 2.0], 6)
LENGTHS = np.arange(len(LIMITS)) % SOURCE_LENGTH + 1
PREFIXES = [[], [A], [B, C], [C, C, A], [D, A], []] * 3

# The options of a search and the same for the reference; a list has an entry for each sentence.
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "banned": ({"banned": [B, D]}, {"banned": (B, D)}),
    "min_length": ({"min_length": 2}, {"least": 2}),
    "min_lengths": ({"min_length": LIMITS // 2}, {"least": (LIMITS // 2).tolist()}),
    "no_token_twice": ({"no_repeat_ngram": 1}, {"ngram": 1}),
    "no_pair_twice": ({"no_repeat_ngram": 2}, {"ngram": 2}),
    "length_reward": ({"length_reward": 0.7}, {"reward": 0.7}),
    "negative_reward": ({"length_reward": -0.7}, {"reward": -0.7}),
    "coverage": ({"coverage_penalty": 0.8}, {"coverage": 0.8}),
    "prefix": ({"prefix": PREFIXES}, {"prefix": PREFIXES}),
}
OPTIONS["all"] = (
    {
        "banned": [B],
        "min_length": 3,
        "no_repeat_ngram": 2,
        "length_reward": 0.3,
        "coverage_penalty": 0.4,
        "prefix": PREFIXES,
    },
    {
        "banned": (B,),
        "least": 3,
        "ngram": 2,
        "reward": 0.3,
        "coverage": 0.4,
        "prefix": PREFIXES,
    },
)


@functools.cache
def tiny_model() -> Seq2Seq:
    return small_model("none")


def sources() -> np.ndarray:
    """Sources whose lengths differ; a `PrefixModel` reads nothing else of them."""
    return np.where(np.arange(SOURCE_LENGTH) < LENGTHS[:, None], A, PAD_ID).astype(np.int32)


def filled(prefixes: list[list[int]]) -> np.ndarray:
    array = np.full([len(prefixes), max(map(len, prefixes))], PAD_ID, np.int32)
    for row, prefix in zip(array, prefixes, strict=True):
        row[: len(prefix)] = prefix
    return array


def as_given(options: dict[str, Any]) -> dict[str, Any]:
    return {k: filled(v) if k == "prefix" else v for k, v in options.items()}


def rules_of(model: PrefixModel, options: dict[str, Any], row: int) -> reference.Rules:
    own = {k: v[row] if isinstance(v, list) else v for k, v in options.items()}
    own["prefix"] = tuple(own.get("prefix", ()))[: LIMITS[row]]
    alignment_fn = model.alignment_fn(row, int(LENGTHS[row]))
    return reference.Rules(**own, alignment_fn=alignment_fn)


@pytest.mark.parametrize("exponent", [0.0, *slow(0.6)])
@pytest.mark.parametrize(("beam_size", "n_best"), [(4, 2), *slow((1, 1), (9, 3))])
@pytest.mark.parametrize("name", quick(OPTIONS, "all", "prefix"))
def test_a_search_equals_the_reference(
    name: str, beam_size: int, n_best: int, exponent: float
) -> None:
    given, expected_options = OPTIONS[name]
    model = PrefixModel(random_tables(7, END_BIASES))
    limits = np.maximum(LIMITS, [len(prefix) for prefix in PREFIXES])

    def search(source: Any) -> Any:
        return beam_search(model, source, beam_size, n_best, exponent, limits, **as_given(given))

    result = as_arrays(search(sources()))
    compiled = as_arrays(tf.function(search, autograph=False)(tf.constant(sources())))
    changed = 0
    for row, limit in enumerate(limits):
        rules = rules_of(model, expected_options, row)
        arguments = (model.log_probs_fn(row), START_ID, END_ID, beam_size, int(limit), exponent)
        early, late, free = (
            reference.beam_search(*arguments, n_best, stops, own).hypotheses
            for stops, own in ((True, rules), (False, rules), (True, reference.FREE))
        )
        assert early == late
        changed += early != free
        for found in (result, compiled):
            assert_equals_reference(found, row, early)
    # Of the few tokens that a greedy search writes, hardly a pair repeats.
    assert changed >= (1 if beam_size == 1 else 3), "the rules change no search"


@pytest.mark.parametrize("name", ["all", *slow(*(name for name in OPTIONS if name != "all"))])
def test_a_wide_beam_finds_what_exhaustive_enumeration_finds(name: str) -> None:
    given, expected_options = OPTIONS[name]
    model = PrefixModel(random_tables(5, END_BIASES))
    result = as_arrays(beam_search(model, sources(), 341, 341, 0.6, 4, **as_given(given)))
    for row in range(6):
        rules = rules_of(model, expected_options, row)
        expected = reference.exhaustive_search(
            model.log_probs_fn(row), START_ID, END_ID, 4, 0.6, rules
        )
        assert_close(result.normalised_log_probs[row, : len(expected)], [h.score for h in expected])
        assert (result.log_probs[row, len(expected) :] < -1e29).all()
        assert_equals_reference(result, row, expected[:3])


def test_the_tokens_that_would_repeat_a_pair_are_found() -> None:
    history = np.array([[[A, B, A, C, A, PAD_ID], [A, A, A, A, A, PAD_ID]]])
    found = as_array(repeating(tf.constant(history, tf.int32), 5, 2))[0]
    assert [set(row) - {PAD_ID} for row in found.astype(int).tolist()] == [{B, C}, {A}]
    assert not as_array(repeating(tf.constant(history, tf.int32), 1, 2)).any()


@pytest.mark.parametrize("half", [[3], *slow([4, 4], [])])
def test_after_half_of_a_target_the_rest_is_what_the_model_scores_highest(half: list[int]) -> None:
    model, source = small_model(), sources_of(3)
    tokens = range(NUM_SPECIAL_IDS, model.vocab_size)
    endings = (e for n in range(5 - len(half)) for e in itertools.product(tokens, repeat=n))
    targets = [np.array([*half, *ending], np.int32) for ending in endings]
    scores = PairScorer(model)(source * len(targets), targets, 64)
    best = np.argsort(-scores)[:5]
    prefix = np.array([half], np.int32)
    found = as_arrays(beam_search(model, padded(source), 400, 400, max_length=5, prefix=prefix))
    ended = np.flatnonzero(found.is_finished[0])[:5]
    assert_close(found.log_probs[0, ended], scores[best])
    for rank, target in zip(ended, best, strict=True):
        written = found.tokens[0, rank, : found.lengths[0, rank]]
        assert written.tolist() == targets[target].tolist()


def test_xla_takes_the_default_limit_but_no_array_of_limits() -> None:
    model, source = small_model("k_memory", vocab_size=9), padded(sources_of(5, 0, 3))

    def compiled(**options: Any) -> Any:
        search = lambda source: beam_search(model, source, 2, **options)  # noqa: E731
        return tf.function(search, autograph=False, jit_compile=True)(tf.constant(source))

    assert_same_search(compiled(), beam_search(model, source, 2))
    with pytest.raises(ValueError, match="or XLA `max_length` must be an int or None"):
        compiled(max_length=np.array([3, 4, 2], np.int32))


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_a_search_compiled_by_xla_finds_the_same(name: str) -> None:
    model, source = small_model("k_memory", vocab_size=9), padded(sources_of(5, 0, 3))
    given = {
        key: value[:3] if key in ("prefix", "min_length") and not isinstance(value, int) else value
        for key, value in OPTIONS[name][0].items()
    }

    def search(source: Any) -> Any:
        return beam_search(model, source, 4, 3, 0.6, 6, **as_given(given))

    compiled = tf.function(search, autograph=False, jit_compile=True)(tf.constant(source))
    assert_same_search(compiled, search(source))


def test_the_coverage_of_k_memory_is_that_of_its_alignment() -> None:
    model, source = small_model("k_memory"), padded(sources_of(5, 3))
    options: dict[str, Any] = {"coverage_penalty": 0.7, "length_reward": 0.2, "min_length": 2}
    found = as_arrays(beam_search(model, source, 3, 3, 0.0, 5, return_alignments=True, **options))
    written = (found.tokens != PAD_ID)[:, :, :, None]
    read = (found.alignments * written).sum(axis=2)  # [batch, n_best, source]
    is_token = (source != PAD_ID)[:, None]
    coverage = np.where(is_token, np.log(np.clip(read, 1e-6, 1.0)), 0.0).sum(axis=2)
    added = 0.7 * coverage + 0.2 * found.lengths
    assert_close(found.normalised_log_probs, found.log_probs + added)
    assert (coverage < -0.01).any()


@pytest.mark.slow
def test_a_prefix_of_the_best_target_changes_nothing_and_another_is_kept() -> None:
    model, source = small_model("none", vocab_size=12), padded(sources_of(5, 2, 3))
    free = as_arrays(beam_search(model, source, 4, max_length=8))
    prefix = free.tokens[:, 0, :2].astype(np.int32) * (free.tokens[:, 0, :2] > END_ID)
    same = as_arrays(beam_search(model, source, 4, max_length=8, prefix=prefix))
    np.testing.assert_array_equal(same.tokens, free.tokens)
    assert_close(same.log_probs, free.log_probs)
    other = np.where(prefix == 5, 6, 5).astype(np.int32)
    forced = as_arrays(beam_search(model, source, 4, max_length=8, prefix=other))
    np.testing.assert_array_equal(forced.tokens[:, 0, :2], other)
    assert (forced.log_probs < free.log_probs).all()


@pytest.mark.slow
def test_the_default_limit_does_not_count_the_prefix() -> None:
    model, source = small_model("none", vocab_size=12), padded(sources_of(1))
    model.logits.bias.assign(np.where(np.arange(12) == END_ID, -1e9, 0.0))
    prefix = np.full([1, 7], 7, np.int32)
    found = as_arrays(beam_search(model, source, 2, prefix=prefix))
    assert found.lengths.tolist() == [[2 * 2 + 10 + 7]]


def test_a_prefix_of_no_tokens_leaves_all_free() -> None:
    model, source = tiny_model(), padded(sources_of(3, 2))
    free = as_arrays(beam_search(model, source, 3, max_length=5))
    none = np.zeros([2, 0], np.int32)
    same = as_arrays(beam_search(model, source, 3, max_length=5, prefix=none))
    np.testing.assert_array_equal(same.tokens, free.tokens)


def test_a_ratio_of_1_lets_a_target_be_as_long_as_its_source() -> None:
    limits, least = limits_of(
        Lengths(max_length_ratio=1.0, min_length_ratio=1.0), np.array([5, 1, 9])
    )
    # A source of 4 tokens and its end token: 4 tokens, then the end token.
    assert as_array(limits).tolist() == [5, 1, 9]
    assert as_array(least).tolist() == [4, 0, 8]
    without_end = limits_of(
        Lengths(max_length_ratio=1.0, min_length_ratio=1.0), np.array([4, 0, 8]), has_end=False
    )
    assert [as_array(each).tolist() for each in without_end] == [[5, 1, 9], [4, 0, 8]]


def test_ratios_are_exact() -> None:
    lengths = np.arange(1, 301)
    for percent in (1, 30, 50, 60, 99, 120, 150, 375):
        ratio = percent / 100
        limits, least = limits_of(Lengths(max_length_ratio=ratio, min_length_ratio=ratio), lengths)
        assert as_array(limits).tolist() == np.maximum(percent * lengths // 100, 1).tolist()
        assert as_array(least).tolist() == (-(-percent * (lengths - 1) // 100)).tolist()


def test_the_default_limit_leaves_room_for_the_least_length() -> None:
    for lengths in (Lengths(min_length_ratio=5.0), Lengths(min_length=20)):
        limits, least = limits_of(lengths, np.array([5, 1]))
        assert (as_array(limits) >= as_array(least) + 10).all()
    limits, _ = limits_of(Lengths(max_length=7, min_length=7), np.array([5, 1]))
    assert as_array(limits).tolist() == [7, 7]
    limits, _ = limits_of(Lengths(max_length=7, max_length_ratio=2.0), np.array([5, 1]))
    assert as_array(limits).tolist() == [7, 2]


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ({"max_length_ratio": 1e9}, "`max_length_ratio` must be in 0.01..100; got 1000000000.0."),
        ({"min_length_ratio": -1}, "`min_length_ratio` must be in 0..100; got -1."),
        (
            {"max_length": 2, "min_length_ratio": 3},
            "`min_length_ratio` must be in 0..2; got 3.",
        ),
        (
            {"min_length_ratio": 2.0, "max_length_ratio": 1.0},
            "`min_length_ratio` must be at most `max_length_ratio`, 1.0; got 2.0.",
        ),
        (
            {"max_length": 3, "min_length": 4},
            "`min_length` must be at most `max_length`, 3; got 4.",
        ),
    ],
)
def test_limits_that_cannot_be_are_refused(lengths: dict[str, Any], message: str) -> None:
    assert refused(Lengths, **lengths) == message


def test_samples_obey_the_constraints() -> None:
    model, source = small_model(vocab_size=9), padded(sources_of(5, 2))
    prefix = np.array([[4, 5], [7, 0]], np.int32)
    options: dict[str, Any] = {"banned": [6], "no_repeat_ngram": 1, "prefix": prefix}
    drawn = as_arrays(sample(model, source, 40, seed=3, max_length=6, min_length=3, **options))
    assert (drawn.tokens[0, :, :2] == [4, 5]).all()
    assert (drawn.tokens[1, :, 0] == 7).all()
    assert len(set(map(tuple, drawn.tokens[0].tolist()))) > 5
    assert (drawn.lengths >= 3).all()
    assert not (drawn.tokens == 6).any()
    for tokens, length in zip(drawn.tokens.reshape(-1, 6), drawn.lengths.ravel(), strict=True):
        assert len(set(tokens[:length])) == length


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_length": -1}, "`min_length` must be an int >= 0; got -1."),
        ({"min_length": [1]}, "`min_length`: expected batch 2; got 1."),
        ({"length_reward": np.nan}, "`length_reward` must be a finite number; got nan."),
        ({"length_reward": 1e38}, "`length_reward` must be in -100..100; got 1e+38."),
        ({"coverage_penalty": -1.0}, "`coverage_penalty` must be in 0..100; got -1.0."),
        ({"no_repeat_ngram": 1.5}, "`no_repeat_ngram` must be an int in 0..32; got 1.5."),
        ({"banned": [2]}, "`banned`: expected no id of padding, start token or end token."),
        ({"banned": [6]}, "`banned`: expected ids in 0..5; got 6."),
        ({"banned": ["a"]}, "`banned` must be an int >= 0; got 'a'."),
        ({"banned": 3}, "`banned`: expected a sequence of ids; got 3."),
        ({"prefix": [3, 4]}, "`prefix`: expected shape [batch, length]; got [2] of int32."),
        ({"prefix": [[3]]}, "`prefix`: expected batch 2; got 1."),
        ({"prefix": "abc"}, "`prefix`: expected rows of ids; got 'abc'."),
        ({"prefix": [[3], [4, 5]]}, "`prefix`: expected rows of the same length, with padding."),
        ({"prefix": [[3.5], [4]]}, "`prefix`: expected ids, whole numbers; got float64."),
        ({"prefix": [[3], [9]]}, "`prefix`: expected ids in 0..5; got 9."),
        (
            {"prefix": [[3, 0], [0, 4]]},
            "`prefix`: expected tokens, then padding; a token follows padding.",
        ),
        (
            {"prefix": [[3, 2], [4, 0]]},
            "`prefix`: expected neither the start token nor the end token.",
        ),
        (
            {"prefix": [[3, 4], [4, 0]], "max_length": 1},
            "`prefix`: expected at most `max_length` tokens.",
        ),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    assert refused(beam_search, tiny_model(), padded(sources_of(3, 2)), **options) == message


def test_coverage_needs_a_model_with_alignments() -> None:
    class Bare:
        def start(self, source: Any, num_queries: int) -> Any: ...

        def step(self, tokens: Any, memory: Any, state: Any) -> Any: ...

    message = refused(beam_search, Bare(), padded(sources_of(3)), coverage_penalty=0.1)
    assert message.startswith("`coverage_penalty`: expected a model with methods `alignment(")


@pytest.mark.parametrize(
    ("attention", "name"),
    [
        ("linear", "LinearAttention"),
        ("none", "NoAttention"),
        ("k_memory_sigmoid", "KMemoryAttention"),
    ],
)
def test_coverage_needs_alignments_that_are_shares(attention: str, name: str) -> None:
    model = small_model(attention)
    expected = (
        "`coverage_penalty`: expected an attention whose alignments are shares of the source, "
        f"non-negative with a sum of at most 1; with its options, {name} has none."
    )
    source = padded(sources_of(3))
    assert refused(beam_search, model, source, coverage_penalty=0.1) == expected
    assert refused(BatchDecoder, model, SearchOptions(coverage_penalty=0.1)) == expected

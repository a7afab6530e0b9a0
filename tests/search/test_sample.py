from collections import Counter
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from seq2seq_memattn.search import chunks
from seq2seq_memattn.search.greedy import greedy_search
from seq2seq_memattn.search.prepare import prepare
from seq2seq_memattn.search.replay import replay_log_probs
from seq2seq_memattn.search.sample import SampleResult, sample
from seq2seq_memattn.vocabulary import END_ID, PAD_ID
from tests.errors import refused
from tests.inputs import run
from tests.marks import slow
from tests.search.models import (
    every_attention,
    one_quick_attention,
    padded,
    scripted,
    small_model,
    sources_of,
    teacher_forced,
)
from tests.search.test_draw import SETTINGS, assert_drawn_with, probabilities
from tests.tolerances import as_array, assert_close

SOURCES = sources_of(6, 0, 3, 8, 1, 2, 5)
VOCAB_SIZE = 6  # of `small_model`


def drawn(model: Any, sources: Any = SOURCES, *arguments: Any, **options: Any) -> SampleResult:
    """Samples as NumPy arrays."""
    source = padded(sources) if isinstance(sources, list) else sources
    return keras.tree.map_structure(as_array, sample(model, source, *arguments, **options))


def assert_same_samples(ours: SampleResult, theirs: SampleResult) -> None:
    for name in ("tokens", "lengths", "is_finished"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert_close(ours.log_probs, theirs.log_probs)


@pytest.mark.parametrize("setting", ["plain", "all", *slow("cold", "top_k", "top_p")])
def test_the_first_token_comes_as_often_as_the_model_says(setting: str) -> None:
    model, sampling = small_model(), SETTINGS[setting]
    options = {name: getattr(sampling, name) for name in ("temperature", "top_k", "top_p")}
    sources = sources_of(4, 7)
    found = drawn(model, sources, num_samples=5_000, max_length=1, seed=11, **options)
    for row, source in enumerate(sources):
        targets = [[token] for token in range(VOCAB_SIZE)]
        logits = teacher_forced(model, padded([source])[0], targets)
        logits[PAD_ID] = 0.0  # `teacher_forced` does not score padding
        assert_drawn_with(found.tokens[row, :, 0].astype(int), probabilities(logits, sampling))


def test_targets_come_as_often_as_the_product_of_their_tokens_probabilities() -> None:
    model = scripted(
        {
            (): {3: 0.6, 4: 0.4},
            (3,): {END_ID: 0.3, 3: 0.7},
            (4,): {END_ID: 1.0},
            (3, 3): {END_ID: 1.0},
        },
        vocab_size=5,
    )
    num_samples = 10_000
    found = drawn(model, np.array([[END_ID]]), num_samples, seed=2, max_length=5)
    expected = {
        (3, END_ID, 0, 0, 0): 0.18,
        (4, END_ID, 0, 0, 0): 0.4,
        (3, 3, END_ID, 0, 0): 0.42,
    }
    counts = Counter(map(tuple, found.tokens[0].astype(int)))
    assert counts.keys() == expected.keys()
    for target, probability in expected.items():
        error = np.sqrt(probability * (1.0 - probability) / num_samples)
        assert abs(counts[target] / num_samples - probability) < 5.0 * error
        one = np.flatnonzero((found.tokens[0] == target).all(axis=1))[0]
        assert_close(np.exp(found.log_probs[0, one]), np.array(probability))
    assert found.is_finished.all()


@every_attention
def test_log_probs_are_the_models_own_whatever_is_drawn_from(attention: str) -> None:
    model = small_model(attention)
    found = drawn(model, SOURCES, 3, 1.5, 6, 0.8, seed=4, max_length=9)
    prepared = prepare(model, 3)
    started = prepared.start(padded(SOURCES), 3)
    tokens = tf.constant(found.tokens, tf.int32)
    assert_close(found.log_probs, replay_log_probs(prepared, *started, tokens))


def test_a_target_ends_with_the_end_token_and_padding_or_at_the_limit() -> None:
    limits = np.array([6, 1, 5, 6, 3, 6, 2])
    found = drawn(small_model(), SOURCES, 40, seed=5, max_length=limits)
    assert found.tokens.shape == (7, 40, 6)
    np.testing.assert_array_equal(found.steps, found.lengths + found.is_finished)
    for row, limit in enumerate(limits):
        for tokens, length, is_finished in zip(
            found.tokens[row], found.lengths[row], found.is_finished[row], strict=True
        ):
            length = int(length)
            assert (tokens[:length] > END_ID).all()
            end = [END_ID] if is_finished else []
            assert tokens[length:].tolist() == end + [PAD_ID] * (6 - length - len(end))
            assert is_finished or length == limit


def test_without_a_limit_a_sentence_takes_twice_its_source_and_ten_more() -> None:
    endless = scripted({}, vocab_size=5)
    endless.tables[:, :, END_ID] = -np.inf
    found = drawn(endless, sources_of(4), seed=1)
    assert found.lengths.tolist() == [[20]] and not found.is_finished.any()


@one_quick_attention
def test_top_1_is_greedy_search(attention: str) -> None:
    model = small_model(attention)
    greedy = keras.tree.map_structure(as_array, greedy_search(model, padded(SOURCES), 7))
    found = drawn(model, SOURCES, 2, top_k=1, max_length=7)
    for number in range(2):
        assert_same_samples(SampleResult(*(array[:, number] for array in found)), greedy)


def test_a_seed_gives_the_same_samples_and_another_seed_others() -> None:
    model = small_model()
    first = drawn(model, SOURCES, 4, seed=1)
    assert_same_samples(drawn(model, SOURCES, 4, seed=1), first)
    assert (drawn(model, SOURCES, 4, seed=2).tokens != first.tokens).any(axis=(1, 2)).all()
    assert len({tuple(tokens) for tokens in first.tokens[3]}) == 4  # samples differ too


def test_without_a_seed_each_call_draws_anew_as_keras_says() -> None:
    model = small_model()
    keras.utils.set_random_seed(8)
    found = [drawn(model, SOURCES, 4, max_length=8) for _ in range(2)]
    assert (found[0].tokens != found[1].tokens).any()
    keras.utils.set_random_seed(8)
    assert_same_samples(drawn(model, SOURCES, 4, max_length=8), found[0])
    function = tf.function(lambda source: sample(model, source, 4, max_length=8).tokens)
    source = padded(SOURCES)
    assert (function(source) != function(source)).numpy().any()


@pytest.mark.slow
def test_samples_depend_neither_on_padding_nor_on_other_sources_nor_on_their_number() -> None:
    model = small_model("bahdanau")
    together = drawn(model, SOURCES, 3, seed=6, max_length=8)
    for source, num_samples in (
        (padded(SOURCES, extra=4), 3),
        (padded(SOURCES[:2]), 2),
        (padded([SOURCES[0], *SOURCES[3:1:-1]]), 3),
    ):
        alone = drawn(model, source, num_samples, seed=6, max_length=8)
        same = [i for i in range(len(source)) if (source[i] != PAD_ID).sum() == len(SOURCES[i]) + 1]
        assert same
        assert_same_samples(
            SampleResult(*(array[same] for array in alone)),
            SampleResult(*(array[same, :num_samples] for array in together)),
        )


def test_equal_sources_of_a_batch_have_samples_of_their_own() -> None:
    found = drawn(small_model(), [SOURCES[0]] * 2, 3, seed=1, max_length=8)
    assert (found.tokens[0] != found.tokens[1]).any(axis=1).all()


@pytest.mark.parametrize("mode", ["graph", *slow("xla")])
@pytest.mark.parametrize("setting", ["plain", *slow("all")])
def test_compiled_samples_are_those_of_eager_mode(
    mode: str, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "DROPPING_CHUNK", 2)
    monkeypatch.setattr(chunks, "KEPT_CHUNK", 4)
    model, sampling = small_model(), SETTINGS[setting]

    def find(source: Any) -> SampleResult:
        options = sampling.temperature, sampling.top_k, sampling.top_p
        return sample(model, source, 3, *options, seed=9, max_length=9)

    source = padded(SOURCES)
    found = keras.tree.map_structure(as_array, run(mode, find, source))
    assert_same_samples(found, keras.tree.map_structure(as_array, find(source)))


def test_a_compiled_function_may_take_the_seed_as_an_argument() -> None:
    model, source = small_model(), padded(SOURCES)
    function = tf.function(lambda seed: sample(model, source, 2, seed=seed, max_length=6))
    for seed in (1, 2):
        found = keras.tree.map_structure(as_array, function(tf.constant(seed)))
        assert_same_samples(found, drawn(model, SOURCES, 2, seed=seed, max_length=6))
    assert function.experimental_get_tracing_count() == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_samples": 0}, "`num_samples` must be an int >= 1; got 0."),
        ({"num_samples": 2.0}, "`num_samples` must be an int >= 1; got 2.0."),
        ({"temperature": 0.0}, "`temperature` must be in 0.0001..10000; got 0.0."),
        ({"temperature": float("nan")}, "`temperature` must be a finite number; got nan."),
        ({"top_k": -1}, "`top_k` must be an int >= 0; got -1."),
        ({"top_k": 2.5}, "`top_k` must be an int >= 0; got 2.5."),
        ({"top_p": 0.0}, "`top_p` must be above 0 and at most 1; got 0.0."),
        ({"top_p": 1.1}, "`top_p` must be above 0 and at most 1; got 1.1."),
        ({"top_p": "0.9"}, "`top_p` must be a finite number; got '0.9'."),
        ({"seed": -1}, "`seed` must be an int in 0..2147483647; got -1."),
        ({"seed": 1.5}, "`seed` must be an int in 0..2147483647; got 1.5."),
        ({"seed": [1, 2]}, "`seed` must be an int in 0..2147483647; got [1, 2]."),
        (
            {"seed": np.array([1, 2])},
            "`seed` must be an int in 0..2147483647; got array([1, 2]).",
        ),
    ],
)
def test_a_wrong_argument_is_refused(options: dict[str, Any], message: str) -> None:
    assert refused(sample, small_model(), padded(SOURCES), **options) == message


def test_numbers_may_be_those_of_numpy() -> None:
    model = small_model()
    expected = drawn(model, SOURCES, 2, 0.5, 3, 0.9, 4, 6)
    numbers = (np.int64(2), np.float64(0.5), np.int64(3), np.float64(0.9), np.int64(4), np.int64(6))
    assert_same_samples(drawn(model, SOURCES, *numbers), expected)


def test_a_model_without_start_and_step_is_refused() -> None:
    with pytest.raises(ValueError, match=r"methods `start\(source.*got Sequential"):
        sample(keras.Sequential([keras.layers.Dense(3)]), padded(SOURCES))

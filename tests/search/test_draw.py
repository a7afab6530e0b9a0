from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from seq2seq_memattn.search.draw import _draw_place, draw, row_seeds
from seq2seq_memattn.search.options import Sampling
from seq2seq_memattn.vocabulary import END_ID, NUM_SPECIAL_IDS, PAD_ID, START_ID
from tests.inputs import normal, run, tensor
from tests.marks import slow
from tests.tolerances import as_array, assert_close

Array = npt.NDArray[Any]

SETTINGS = {
    "plain": Sampling(),
    "cold": Sampling(temperature=0.5),
    "hot": Sampling(temperature=3.0),
    "top_k": Sampling(top_k=4),
    "top_p": Sampling(top_p=0.7),
    "small_top_p": Sampling(top_p=0.01),
    "least_top_p": Sampling(top_p=1e-46),
    "all": Sampling(temperature=1.5, top_k=6, top_p=0.8),
    "wide": Sampling(top_k=1000, top_p=0.999),
}


def probabilities(logits: Array, sampling: Sampling) -> Array:
    """The probability of each token, computed by sorting and a loop."""
    logits = np.asarray(logits, np.float64) / sampling.temperature
    logits[[PAD_ID, START_ID]] = -np.inf
    order = np.argsort(-logits)[: sampling.top_k or None]
    weights = np.exp(logits[order] - logits[order[0]])
    weights /= weights.sum()
    kept, mass = 0, 0.0
    while kept < len(weights) and mass < sampling.top_p:
        mass += weights[kept]
        kept += 1
    found = np.zeros(len(logits))
    found[order[:kept]] = weights[:kept] / mass
    return found


def draws(logits: Array, count: int, sampling: Sampling, seed: int = 1, step: int = 0) -> Array:
    """Draws `count` tokens from one distribution."""
    many = tensor(np.broadcast_to(logits, (1, count, len(logits))))
    token, logit = draw(
        many, row_seeds(seed, tensor([0], "int32")), tensor(step, "int32"), sampling
    )
    found = as_array(token)[0]
    assert_close(as_array(logit)[0], logits[found])
    return found


def assert_drawn_with(found: Array, expected: Array) -> None:
    """Asserts that tokens occur as often as their probabilities, by a chi-square test."""
    counts = np.bincount(found, minlength=len(expected))
    assert not counts[expected == 0.0].any()
    means = len(found) * expected
    often, seldom = means >= 5.0, (means < 5.0) & (expected > 0.0)
    counts = np.append(counts[often], counts[seldom].sum())
    means = np.append(means[often], means[seldom].sum() + 1e-9)
    freedom = max(len(means) - 1, 1)
    assert ((counts - means) ** 2 / means).sum() < freedom + 5.0 * np.sqrt(2.0 * freedom)


@pytest.mark.parametrize("vocab_size", [12, *slow(401)])
@pytest.mark.parametrize("setting", SETTINGS)
def test_tokens_come_as_often_as_the_softmax_says(setting: str, vocab_size: int) -> None:
    logits = 2.0 * normal(vocab_size, seed=4).astype(np.float32)
    expected = probabilities(logits, SETTINGS[setting])
    assert_drawn_with(draws(logits, 20_000, SETTINGS[setting]), expected)


def test_a_large_vocabulary_is_drawn_from_as_the_softmax_says() -> None:
    logits = 2.0 * normal(5003, seed=5).astype(np.float32)
    for name in ("plain", "top_p"):
        expected = probabilities(logits, SETTINGS[name])
        assert_drawn_with(draws(logits, 2_000, SETTINGS[name]), expected)


def test_padding_and_the_start_token_are_not_drawn() -> None:
    logits = np.array([50.0, 40.0, 0.0, 1.0, -1.0], np.float32)
    for sampling in SETTINGS.values():
        assert draws(logits, 500, sampling).min() >= END_ID


def test_what_has_no_probability_is_not_drawn() -> None:
    logits = np.full(90, -np.inf, np.float32)
    logits[[7, 41, 88]] = [0.0, -1.0, 0.5]
    for sampling in (SETTINGS["plain"], SETTINGS["top_p"], Sampling(top_k=50)):
        assert set(draws(logits, 2_000, sampling)) <= {7, 41, 88}


@pytest.mark.parametrize(
    ("weights", "number", "place"),
    [
        ([0.0, 1.0, 2.0, 0.0, 0.0, 0.0], 1.0, 2),  # a number rounded up to 1
        ([5.0, 0.0, 0.0, 1e8], 6e-8, 3),  # in float32, 5 + 1e8 - 1e8 is 8, above the goal of 6
        ([0.0, 0.0, 3.0], 0.0, 2),
    ],
)
def test_rounding_leads_to_no_place_without_weight(
    weights: list[float], number: float, place: int
) -> None:
    assert as_array(_draw_place(tensor([weights]), tensor([number]))).tolist() == [place]


def test_at_least_one_token_remains() -> None:
    logits = normal(9, seed=6).astype(np.float32)
    best = NUM_SPECIAL_IDS - 1 + np.argmax(logits[END_ID:])
    for sampling in (Sampling(top_k=1), Sampling(top_p=1e-9), Sampling(temperature=1e-4)):
        assert set(draws(logits, 100, sampling)) == {best}


def test_equally_probable_tokens_are_in_or_out_of_top_p_together() -> None:
    logits = np.log(np.array([1e-9, 1e-9, 0.1, 0.4, 0.25, 0.25], np.float32))
    assert set(draws(logits, 1_000, Sampling(top_p=0.5))) == {3, 4, 5}
    assert set(draws(logits, 1_000, Sampling(top_p=0.35))) == {3}


def test_numbers_differ_between_seeds_sentences_queries_and_steps() -> None:
    logits, count = np.zeros(5000, np.float32), 30
    first = draws(logits, count, Sampling())
    assert len(set(first)) > count - 3  # queries differ
    assert (draws(logits, count, Sampling(), seed=2) != first).sum() > count - 3
    assert (draws(logits, count, Sampling(), step=1) != first).sum() > count - 3
    both = tensor(np.zeros((2, count, len(logits))))
    token, _ = draw(both, row_seeds(1, tensor([0, 1], "int32")), 0, Sampling())
    np.testing.assert_array_equal(as_array(token)[0], first)
    assert (as_array(token)[1] != first).sum() > count - 3


@pytest.mark.parametrize("mode", ["graph", "xla"])
def test_compiled_draws_are_those_of_eager_mode(mode: str) -> None:
    logits = tensor(2.0 * normal(3, 50, 211, seed=7))
    for sampling in (SETTINGS["plain"], SETTINGS["top_p"], SETTINGS["all"]):

        def tokens(logits: Any, sampling: Sampling = sampling) -> Any:
            return draw(logits, row_seeds(3, tensor([4, 0, 9], "int32")), 2, sampling)[0]

        expected = as_array(tokens(logits))
        np.testing.assert_array_equal(as_array(run(mode, tokens, logits)), expected)

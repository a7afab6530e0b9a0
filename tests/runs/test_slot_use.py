import numpy as np
import pytest

from seq2seq_memattn.runs.slot_use import slot_use
from tests.errors import refused


def test_one_slot_for_all_steps_has_a_perplexity_of_1_and_leaves_the_others_dead() -> None:
    scores = np.eye(5)[[2, 2, 2]]
    assert slot_use([scores, scores]) == {
        "slots": 5,
        "dead": 4,
        "corpus": pytest.approx(1.0),
        "sentence": pytest.approx(1.0),
        "step": pytest.approx(1.0),
    }


def test_each_perplexity_counts_what_it_says() -> None:
    # Each step reads one slot, each target two, and all targets four of five.
    found = slot_use([np.eye(5)[[0, 1]], np.eye(5)[[2, 3, 2, 3]]])
    counts = (found["dead"], found["sentence"], found["step"])
    assert counts == (1, pytest.approx(2.0), pytest.approx(1.0))
    shares = np.array([1, 1, 2, 2]) / 6
    assert found["corpus"] == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))


def test_scores_of_sigmoids_are_shares_of_their_sum() -> None:
    even = np.full([3, 4], 0.9)
    assert slot_use([even, even[:0]])["step"] == pytest.approx(4.0)


def test_scores_that_are_not_numbers_do_not_look_like_a_use() -> None:
    found = slot_use([np.full([2, 4], np.nan)])
    assert all(np.isnan(found[name]) for name in ("corpus", "sentence", "step"))


def test_no_steps_are_refused() -> None:
    expected = "`scores`: expected the scores of at least one step; got none."
    assert refused(slot_use, [np.zeros([0, 4])]) == expected

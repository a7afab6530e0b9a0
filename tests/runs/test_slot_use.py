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


def test_means_are_those_of_loops_over_targets_and_steps() -> None:
    rng = np.random.default_rng(3)
    targets = [rng.gamma(0.3, size=[length, 6]) for length in (2, 7, 4)]
    shares = [[step / step.sum() for step in target] for target in targets]

    def entropy(share: np.ndarray) -> float:
        return -sum(float(x) * float(np.log(x)) for x in share)

    steps = [step for target in shares for step in target]
    of_target = [entropy(np.mean(target, axis=0)) for target in shares for _ in target]
    found = slot_use(targets)
    assert found["step"] == pytest.approx(np.exp(np.mean([entropy(step) for step in steps])))
    assert found["sentence"] == pytest.approx(np.exp(np.mean(of_target)))
    assert found["corpus"] == pytest.approx(np.exp(entropy(np.mean(steps, axis=0))))


@pytest.mark.parametrize(("share", "dead"), [(0.019, 1), (0.021, 0)])
def test_a_slot_with_less_than_a_tenth_of_an_even_share_is_dead(share: float, dead: int) -> None:
    others = np.full([4], (1.0 - share) / 4)
    assert slot_use([np.array([[share, *others]])])["dead"] == dead


def test_scores_of_sigmoids_are_shares_of_their_sum() -> None:
    even = np.full([3, 4], 0.9)
    assert slot_use([even, even[:0]])["step"] == pytest.approx(4.0)


def test_scores_that_are_not_numbers_do_not_look_like_a_use() -> None:
    found = slot_use([np.full([2, 4], np.nan)])
    assert all(np.isnan(found[name]) for name in ("corpus", "sentence", "step"))


def test_no_steps_are_refused() -> None:
    expected = "`scores`: expected the scores of at least one step; got none."
    assert refused(slot_use, [np.zeros([0, 4])]) == expected

import dataclasses
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.training.updates.schedule import Plateau, learning_rate

UPDATES = range(40)


def rates(**options: Any) -> list[float]:
    config = TrainingConfig(learning_rate=0.8, **options)
    return [learning_rate(config, updates) for updates in UPDATES]


def test_a_constant_rate_is_exactly_the_one_that_was_given() -> None:
    assert rates() == [0.8] * len(UPDATES)
    assert not TrainingConfig().has_schedule


def test_the_warm_up_rises_linearly_and_its_last_update_has_the_highest_rate() -> None:
    found = rates(warmup_updates=4)
    np.testing.assert_allclose(found[:6], [0.2, 0.4, 0.6, 0.8, 0.8, 0.8])
    assert TrainingConfig(warmup_updates=1).has_schedule


def test_inverse_sqrt_is_that_of_vaswani_et_al() -> None:
    warmup = 9
    # Their equation 3, scaled to a maximum of 0.8.
    expected = [
        0.8 * warmup**0.5 * min(step**-0.5, step * warmup**-1.5)
        for step in (updates + 1 for updates in UPDATES)
    ]
    found = rates(schedule="inverse_sqrt", warmup_updates=warmup)
    np.testing.assert_allclose(found, expected)
    assert np.argmax(found) == warmup - 1


def test_exponential_decay_starts_where_it_is_told_to() -> None:
    found = rates(schedule="exponential", decay_start=10, decay_every=5, decay_rate=0.5)
    assert found[:11] == [0.8] * 11
    np.testing.assert_allclose([found[15], found[20], found[30]], [0.4, 0.2, 0.05])
    np.testing.assert_allclose(found[12], 0.8 * 0.5 ** (2 / 5))


def test_a_staircase_decays_at_once() -> None:
    found = rates(
        schedule="exponential", decay_start=10, decay_every=5, decay_rate=0.5, decay_staircase=True
    )
    np.testing.assert_allclose(found[:25], [0.8] * 15 + [0.4] * 5 + [0.2] * 5)


def test_exponential_decay_may_be_warmed_up_for() -> None:
    decay: dict[str, Any] = {"schedule": "exponential", "decay_every": 7, "decay_rate": 0.9}
    ratio = np.array(rates(warmup_updates=5, **decay)) / rates(**decay)
    np.testing.assert_allclose(ratio, [0.2, 0.4, 0.6, 0.8] + [1.0] * 36)


def test_a_plateau_multiplies_the_rate_once_for_each_decay() -> None:
    config = TrainingConfig(learning_rate=0.8, schedule="plateau", decay_rate=0.25)
    assert [learning_rate(config, 7, decays) for decays in (0, 1, 2)] == [0.8, 0.2, 0.05]
    other = dataclasses.replace(config, schedule="constant")
    assert learning_rate(other, 7, 2) == 0.8


def test_a_plateau_is_validations_without_a_better_bleu() -> None:
    state, decays, stale = Plateau(), [], []
    for bleu in (0.0, 5.0, 5.0, 4.0, 5.5, 5.0, 5.0, 5.0, 5.0, 6.0):
        state = state.after(bleu, patience=2)
        decays.append(state.decays)
        stale.append(state.stale)
    assert decays == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
    assert stale == [0, 0, 1, 0, 0, 1, 0, 1, 0, 0]
    assert state.best_bleu == 6.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"schedule": "inverse_sqrt"}, "`warmup_updates` must be positive for schedule"),
        ({"schedule": "cosine"}, "`schedule` must be one of 'constant', .*; got 'cosine'"),
        ({"warmup_updates": -1}, "`warmup_updates` must not be negative; got -1"),
        ({"decay_start": -1}, "`decay_start` must not be negative; got -1"),
        ({"decay_every": 0}, "`decay_every` must be positive; got 0"),
        ({"decay_patience": 0}, "`decay_patience` must be positive; got 0"),
        ({"decay_rate": 0.0}, r"`decay_rate` must be in \(0, 1\]; got 0.0"),
        ({"decay_rate": 1.5}, r"`decay_rate` must be in \(0, 1\]; got 1.5"),
        ({"label_smoothing": 1.0}, r"`label_smoothing` must be in \[0, 1\); got 1.0"),
    ],
)
def test_options_out_of_their_range_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainingConfig(**wrong)

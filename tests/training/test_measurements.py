import json

import pytest

from seq2seq_memattn.training.measurements import Clock, Sums, UpdateResult, Window


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, as a list of one entry, which tests change."""
    time = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: time[0])
    return time


def test_the_clock_counts_on_from_the_starts_before(now: list[float]) -> None:
    clock = Clock(40.0)
    now[0] += 2.5
    assert clock.seconds() == 42.5


def test_the_speed_leaves_waits_out(now: list[float]) -> None:
    window = Window()
    window.add(UpdateResult(1.0, 300.0, 1.0, True))
    now[0] += 2.0
    assert window.glance()["tokens_per_second"] == 150.0
    now[0] += 60.0  # a validation
    window.start_clock()
    window.add(UpdateResult(1.0, 100.0, 1.0, True))
    window.add(UpdateResult(1.0, 50.0, 1.0, False))  # skipped
    now[0] += 0.5
    assert window.take()["tokens_per_second"] == 200.0


def test_waits_for_the_input_are_a_share_of_the_time(now: list[float]) -> None:
    window = Window()
    window.add_wait(0.5)
    window.add_wait(0.25)
    now[0] += 3.0
    assert window.take()["waiting"] == 0.25
    now[0] += 2.0
    assert window.take()["waiting"] == 0.0  # counted anew for each line of the log


def test_a_window_goes_on_from_the_sums_of_another_start() -> None:
    first = Window()
    first.add(UpdateResult(2.0, 10.0, 1.0, True))
    second = Window(Sums(**first.sums._asdict()))
    second.add(UpdateResult(1.0, 30.0, 2.0, True))
    assert second.loss == 50 / 40
    figures = second.take()
    assert (figures["loss"], figures["gradient_norm"]) == (50 / 40, 1.5)
    assert second.loss == 50 / 40  # kept until the next update
    second.add(UpdateResult(3.0, 10.0, 0.5, True))
    assert second.loss == 3.0


def test_terms_of_the_loss_are_logged_where_there_is_more_than_one() -> None:
    window = Window()
    window.add(UpdateResult(2.0, 10.0, 1.0, True, {"cross_entropy": 2.0}))
    assert not any(name.startswith("loss_") for name in window.take())
    window.add(UpdateResult(2.0, 10.0, 1.0, True, {"cross_entropy": 1.5, "contexts": 0.5}))
    window.add(UpdateResult(9.0, 10.0, 1.0, False, {"cross_entropy": 9.0, "contexts": 0.0}))
    window = Window(Sums(**json.loads(json.dumps(window.sums._asdict()))))  # a checkpoint's
    window.add(UpdateResult(1.0, 30.0, 2.0, True, {"cross_entropy": 0.5, "contexts": 0.5}))
    figures = window.take()
    assert (figures["loss_cross_entropy"], figures["loss_contexts"]) == (30 / 40, 20 / 40)
    assert figures["loss"] == 50 / 40
    assert "loss_contexts" not in window.take()

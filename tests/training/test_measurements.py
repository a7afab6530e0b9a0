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

import pytest

from experiments.benchmarks import machine_load
from experiments.benchmarks.machine_load import Stopwatch


def test_what_other_programs_use_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, own, clock = iter([100.0, 112.0]), iter([5.0, 14.0]), iter([0.0, 10.0])
    monkeypatch.setattr(machine_load, "_busy_seconds", lambda: next(busy))
    monkeypatch.setattr(machine_load, "_own_seconds", lambda: next(own))
    with monkeypatch.context() as patch:
        patch.setattr(machine_load.time, "monotonic", lambda: next(clock))
        with Stopwatch() as watch:
            pass
    assert watch.seconds == 10.0
    assert watch.elsewhere == pytest.approx(0.3)


def test_the_machine_is_at_least_as_busy_as_this_process() -> None:
    before = machine_load._busy_seconds(), machine_load._own_seconds()
    while machine_load._own_seconds() < before[1] + 0.3:
        pass
    busy = machine_load._busy_seconds() - before[0]
    assert busy > 0.2  # counted in hundredths

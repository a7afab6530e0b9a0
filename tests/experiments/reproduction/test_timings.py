"""Times that tables show."""

from pathlib import Path

import pytest

from experiments.reproduction import timings as module
from experiments.reproduction.timings import origin, timings


def test_times_are_measured_once_for_each_command_behind_what_prepares_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    def run_command(arguments: list[str]) -> dict[str, object]:
        done.append(" ".join(arguments))
        return {"hardware": "H, 2 cores", "rows": [{"seconds": 1.5}]}

    monkeypatch.setattr(module, "run_command", run_command)
    path = tmp_path / "times.json"
    for length in (20, 20, 50):
        found = timings(path, [f"--lengths={length}"], lambda: done.append("prepared"))
        assert found["rows"] == [{"seconds": 1.5}]
        expected = f"`python -m experiments.speed --lengths={length}`"
        assert origin(found) == f"H, 2 cores, commit {found['commit']}; {expected}"
    assert done == [
        *("prepared", "experiments.speed --lengths=20"),
        *("prepared", "experiments.speed --lengths=50"),
    ]

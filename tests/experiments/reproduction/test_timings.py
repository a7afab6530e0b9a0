"""Decoding times in tables."""

from pathlib import Path

import pytest

from experiments.reproduction import timings as module
from experiments.reproduction.results import read_json
from experiments.reproduction.timings import measure_times, origin


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
        measure_times(path, [f"--lengths={length}"], lambda: done.append("prepared"))
        found = read_json(path)
        assert found["rows"] == [{"seconds": 1.5}]
        expected = f"```\npython -m experiments.speed --lengths={length}\n```"
        commit = found["commit"].replace("+", " with changed files")
        assert origin(found) == f"H, 2 cores, commit {commit}:\n\n{expected}"
    assert done == [
        *("prepared", "experiments.speed --lengths=20"),
        *("prepared", "experiments.speed --lengths=50"),
    ]

"""Table 3."""

from pathlib import Path
from typing import Any

import pytest

from experiments.reproduction.pages import write_page
from experiments.reproduction.results import write_json
from experiments.reproduction.study import make_study
from experiments.studies import table3


def row(attention: str, seconds: float) -> dict[str, Any]:
    return {
        "attention": attention,
        "seconds": seconds,
        "all_seconds": [seconds - 1, seconds, seconds + 1],
        "steps_seconds": seconds / 2,
        "parts_ms": {"cells and attention": 1.0, "output layer": 2.0, "selection": 1.0},
    }


def test_the_page_has_the_papers_seconds_and_ratios_and_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = make_study("table3", "tiny", [], tmp_path, tmp_path / "results")
    times = [row("k_memory:32", 10.0), row("k_memory:64", 12.0), row("bahdanau", 20.0)]
    made = {"command": "python -m C", "commit": "0123456789", "hardware": "H, 2 cores"}
    assert table3.results(of) == []
    monkeypatch.setattr(
        table3,
        "measure_times",
        lambda path, arguments, prepare: write_json(path, {**made, "rows": times}),
    )
    results = table3.run(of)
    write_page("table3", "tiny", of, results, tmp_path / "results")
    page = (tmp_path / "results" / "table3_tiny.md").read_text()
    assert "| K=64 | 27.13 | 12.00 | 11.00 to 13.00 | 0.82 | 0.60 | 6.00 | 75 % |" in page
    assert "| Att | 33.28 | 20.00 | 19.00 to 21.00 | 1.00 | 1.00 |" in page
    assert "reproduce table3 --scale=tiny\n```" in page
    assert "H, 2 cores, commit 0123456789:\n\n```\npython -m C\n```" in page

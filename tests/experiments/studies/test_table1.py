"""Table 1: what its page makes of results and times."""

from pathlib import Path
from typing import Any

import pytest

from experiments.studies import table1
from tests.experiments.row_results import result_of

SECONDS = {"none": 2.0, "k_memory:1": 2.5, "bahdanau": 4.0}


def timed(path: Path, arguments: list[str]) -> dict[str, Any]:
    """In place of a measurement: seconds by attention, those that were asked for."""
    names = arguments[1].removeprefix("--attentions=").split(",")
    rows = [{"attention": name, "seconds": SECONDS[name], "batch_size": 128} for name in names]
    return {"hardware": "H", "commit": "0123456789", "command": f"for {path.name}", "rows": rows}


def results_of(*of: tuple[int, str]) -> list[dict[str, Any]]:
    return [
        {
            **result_of(table1.row(length, name, "full"), 90.0),
            "evaluation": {"lines": 1000, "exact": 0.5},
            "configuration": {"model": {"decoder_units": 256}},
        }
        for length, name in of
    ]


@pytest.fixture(autouse=True)
def nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table1, "timings", timed)


def test_times_are_beside_the_papers_and_over_those_without_attention_and_with_bahdanaus() -> None:
    results = results_of((20, "none"), (20, "bahdanau"), (50, "none"))
    page = table1.tables(table1.add_decoding_times(results, Path("somewhere")))[".md"]
    first, second = page.split("## Decoding time")
    assert "| 20 | Att | 99.98 | 90.00 | 50.0 % | 2.86 | 4.00 | 4,000 | 1 |" in first
    assert "| 20 | No Att | 2.03 | 2.00 | 1.00 | 1.00 | 0.71 | 0.50 |" in second
    # Nothing is put beside what was not timed.
    assert "| 50 | No Att | 3.90 | 2.00 | 1.00 | 1.00 | - | - |" in second
    assert "* H, commit 0123456789; `for decoding_l20.json`" in second


def test_lengths_that_the_paper_does_not_have_are_without_its_times() -> None:
    results = [{**result, "length": 6} for result in results_of((20, "none"))]
    results = table1.add_decoding_times(results, Path("somewhere"))
    assert "| 6 | No Att | - | 2.00 | - | 1.00 | - | - |" in table1.times_table(results)


def test_models_that_were_not_trained_are_timed_too_where_they_are_asked_for() -> None:
    results = results_of((20, "none"), (20, "bahdanau"))
    for asked, expected in (((), ["none", "bahdanau"]), (tuple(SECONDS), list(SECONDS))):
        timed_results = table1.add_decoding_times(results, Path("somewhere"), asked)
        assert [list(one["decoding_times"]) for one in timed_results] == [expected] * 2
        assert [one["decoding_seconds"] for one in timed_results] == [2.0, 4.0]

"""Table 1: what its page makes of results and times."""

from pathlib import Path
from typing import Any

import pytest

from experiments import table1
from tests.experiments.row_results import result_of

SECONDS = {"none": 2.0, "k_memory:1": 2.5, "bahdanau": 4.0}


def timed(path: Path, arguments: list[str]) -> dict[str, Any]:
    """In place of a measurement: seconds by attention, those that were asked for."""
    names = arguments[1].removeprefix("--attentions=").split(",")
    rows = [{"attention": name, "seconds": SECONDS[name], "batch_size": 128} for name in names]
    return {"hardware": "H", "commit": "0123456789", "command": f"for {path.name}", "rows": rows}


def results_of(*names: str) -> list[dict[str, Any]]:
    return [
        {
            **result_of(table1.table1_row(name, "full"), 90.0),
            "length": 20,
            "evaluation": {"lines": 1000, "exact": 0.5},
            "configuration": {"model": {"decoder_units": 256}},
        }
        for name in names
    ]


@pytest.mark.parametrize("every", [list(SECONDS), []])
def test_times_are_beside_the_papers_and_over_those_without_attention_and_with_bahdanaus(
    monkeypatch: pytest.MonkeyPatch, every: list[str]
) -> None:
    monkeypatch.setattr(table1, "timings", timed)
    results = results_of("copy_20_none", "copy_20_bahdanau")
    results = table1.add_decoding_times(results, Path("somewhere"), every)
    page = table1.tables(results)[".md"]
    first, second = page.split("## Decoding time")
    assert "| 20 | Att | 99.98 | 90.00 | 50.0 % | 2.86 | 4.00 | 4,000 | 1 |" in first
    assert "| 20 | No Att | 2.03 | 2.00 | 1.00 | 1.00 | 0.71 | 0.50 |" in second
    # Times need no trained model.
    k1 = "| 20 | K=1 | 2.12 | 2.50 | 1.04 | 1.25 | 0.74 | 0.62 |"
    assert (k1 in second) == bool(every)
    assert "* H, commit 0123456789; `for decoding_l20.json`" in second


def test_ratios_to_what_was_not_timed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table1, "timings", timed)
    results = table1.add_decoding_times(results_of("copy_20_none"), Path("somewhere"))
    assert "| 20 | No Att | 2.03 | 2.00 | 1.00 | 1.00 | - | - |" in table1.times_markdown(results)


def test_lengths_that_the_paper_does_not_have_are_without_its_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table1, "timings", timed)
    results = [{**result, "length": 6} for result in results_of("copy_20_none")]
    results = table1.add_decoding_times(results, Path("somewhere"))
    assert "| 6 | No Att | - | 2.00 | - | 1.00 | - | - |" in table1.times_markdown(results)

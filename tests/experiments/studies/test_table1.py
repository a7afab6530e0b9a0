"""Table 1: its page, made from results and times."""

from pathlib import Path
from typing import Any

import pytest

from experiments.reproduction.results import write_json
from experiments.studies import table1
from tests.experiments.row_results import result_of

SECONDS = {"none": 2.0, "k_memory:1": 2.5, "bahdanau": 4.0}


def timed(path: Path, arguments: list[str]) -> None:
    """Replaces the measurement: writes made-up seconds of the requested attentions."""
    names = arguments[1].removeprefix("--attentions=").split(",")
    rows = [
        {
            "attention": name,
            "seconds": SECONDS[name],
            "all_seconds": [SECONDS[name] + 1, SECONDS[name], SECONDS[name] - 1],
            "batch_size": 128,
        }
        for name in names
    ]
    made = {"hardware": "H", "commit": "0123456789", "command": f"for {path.name}"}
    write_json(path, {**made, "rows": rows})


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
    monkeypatch.setattr(table1, "measure_times", timed)


def test_times_are_beside_the_papers_and_over_those_without_attention_and_with_bahdanaus(
    tmp_path: Path,
) -> None:
    results = results_of((20, "none"), (20, "bahdanau"), (50, "none"))
    table1.time_decoding(results, tmp_path)
    page = table1.tables(table1.with_decoding_times(results, tmp_path))
    first, second = page.split("## Decoding time")
    assert "| 20 | Att | 99.98 | 90.00 | 50.0 % | 200,000 | 4,000 | 1 |" in first
    assert "| 20 | No Att | 2.03 | 2.00 | 1.00 to 3.00 | 1.00 | 1.00 | 0.71 | 0.50 |" in second
    # Bahdanau's attention was not timed at L = 50, so there is no ratio to it.
    assert "| 50 | No Att | 3.90 | 2.00 | 1.00 to 3.00 | 1.00 | 1.00 | 0.60 | - |" in second
    assert "L = 20: H, commit 0123456789:\n\n```\nfor decoding_l20.json\n```" in second


def test_lengths_that_the_paper_does_not_have_are_without_its_times(tmp_path: Path) -> None:
    results = [{**result, "length": 6} for result in results_of((20, "none"))]
    table1.time_decoding(results, tmp_path)
    found = table1.with_decoding_times(results, tmp_path)
    assert "| 6 | No Att | - | 2.00 | 1.00 to 3.00 | - | 1.00 | - | - |" in table1.times_table(
        found
    )


def test_results_stand_without_times_that_were_not_measured(tmp_path: Path) -> None:
    results = results_of((20, "none"))
    assert table1.with_decoding_times(results, tmp_path) == results
    assert "90.00" in table1.tables(results)


def test_models_that_were_not_trained_are_timed_too_where_they_are_asked_for(
    tmp_path: Path,
) -> None:
    results = results_of((20, "none"), (20, "bahdanau"))
    for asked, expected in (((), ["none", "bahdanau"]), (tuple(SECONDS), list(SECONDS))):
        table1.time_decoding(results, tmp_path, asked)
        found = table1.with_decoding_times(results, tmp_path)
        names = [[row["attention"] for row in one["timed"]["rows"]] for one in found]
        assert names == [expected] * 2
        assert [one["decoding_seconds"] for one in found] == [2.0, 4.0]

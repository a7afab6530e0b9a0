"""Table 3 of Flexible Attention, from made-up times."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from experiments.reproduction.results import in_words, read_json, write_json
from experiments.reproduction.study import Study, make_study
from experiments.studies import flexible_table3
from tests.experiments.studies.flexible_results import made_up_results

NAME = "multi30k_de_en_characters"


@pytest.fixture
def study(tmp_path: Path) -> Any:
    """The study of the table, with results for its rows."""
    of = make_study("flexible_table3", "tiny", [], tmp_path / "work", tmp_path / "results")
    assert of.names() == [f"{NAME}_global", f"{NAME}_flexible", f"{NAME}_flexible_tuned"]
    for result in made_up_results(of.rows):
        write_json(of.results_dir / f"{result['name']}.json", result)
    (of.data_dir / f"{NAME}_tiny").mkdir(parents=True)
    return of


def times(run_dir: str, threshold: float | None, milliseconds: float) -> list[dict[str, Any]]:
    attention = "luong_concat" if run_dir.endswith("global") else "flexible"
    return [
        {
            "run_dir": run_dir,
            "attention": attention,
            "threshold": threshold,
            "joined": joined,
            "batch_size": 1,
            "source_tokens": 70.0 * joined,
            "window": 20.25,
            "milliseconds": milliseconds * joined,
            "all_milliseconds": [milliseconds * joined - 1, milliseconds * joined + 1],
        }
        for joined in (1, 2)
    ]


def test_runs_take_turns_with_their_thresholds_and_are_measured_once(
    study: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    rows = [
        *times(f"{NAME}_global", None, 50.0),
        *times(f"{NAME}_flexible", None, 48.0),
        *times(f"{NAME}_flexible_tuned", 0.8, 45.0),
    ]

    def run(command: list[str]) -> None:
        commands.append(command)
        file = tmp_path / "results" / "flexible_table3" / "tiny" / f"{NAME}.json"
        made = {"hardware": "H", "commit": "0123456789"}
        write_json(file, {"rows": rows, "command": in_words(command), **made})

    monkeypatch.setattr(flexible_table3, "run_command", run)
    monkeypatch.setattr(Study, "run", Study.finished)
    assert flexible_table3.results(study) == []
    assert flexible_table3.run(study) == [] and not commands  # the runs are not here
    monkeypatch.setattr(Study, "has_run_of", lambda self, result: True)
    results = flexible_table3.run(study)
    runs = [f"{study.runs_dir / NAME}_{name}" for name in ("global", "flexible", "flexible_tuned")]
    assert f"--runs={runs[0]},{runs[1]},{runs[2]}:0.8" in commands[0]
    page = flexible_table3.tables(results)
    assert "| global | - | 70.0 | 20.2 | 1 | 50.0 | 49.0 to 51.0 | 1.00 |" in page
    assert "| flexible | - | 70.0 | 20.2 | 1 | 48.0 | 47.0 to 49.0 | 0.96 |" in page
    assert "| tuned | 0.8 | 70.0 | 20.2 | 1 | 45.0 | 44.0 to 46.0 | 0.90 |" in page
    assert "| tuned | 0.8 | 140.0 | 20.2 | 1 | 90.0 | 89.0 to 91.0 | 0.90 |" in page
    assert "Timed on: H (commit 0123456789)." in page
    assert flexible_table3.run(study) == results
    assert len(commands) == 1
    alone = dataclasses.replace(study, chosen=[f"{NAME}_flexible"])
    with pytest.raises(ValueError, match=f"--rows: timed in turns with {NAME}_flexible_tuned, "):
        flexible_table3.run(alone)
    monkeypatch.setattr(flexible_table3, "JOINED", (1,))  # another command
    flexible_table3.run(study)
    assert len(commands) == 2
    file = study.results_dir / f"{NAME}_global.json"
    write_json(file, {**read_json(file), "bleu": 1.0})  # trained again
    flexible_table3.run(study)
    assert len(commands) == 3

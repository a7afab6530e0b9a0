"""Decoding of sequences longer than those in training."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from experiments.reproduction.pages import write_page
from experiments.reproduction.results import read_json, write_json
from experiments.reproduction.rows import copy_data
from experiments.reproduction.study import Study, make_study
from experiments.studies import unseen_lengths
from tests.experiments.row_results import write_results_of, write_run_of
from tests.pictures import assert_drawn
from tests.running import run_here

TARGETS = ["1 2 3 4", "1 2 3 4 5 6 7", "1 2 3 4 5 6 7 8 9 10", "1 2 3 4 5 6 7 8 9 10 11 12"]


@pytest.fixture
def of(tmp_path: Path) -> Study:
    names = ["copy_50_k32", "copy_50_bahdanau"]
    made = make_study("unseen_lengths", "tiny", [], tmp_path, tmp_path / "results")
    rows = [row for row in made.rows if row.name in names]
    assert [row.name for row in rows] == names
    return dataclasses.replace(made, rows=rows)


@pytest.fixture
def commands(of: Study, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Records commands instead of running them; an evaluation copies three of the four lines."""
    found: list[list[str]] = []

    def run(arguments: list[str]) -> Any:
        found.append(arguments)
        if arguments[0] == "data_prep.copy_task":
            folder = Path(arguments[-1].partition("=")[2])
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "valid.target.txt").write_text("\n".join(TARGETS) + "\n")
            return {}
        (folder,) = (Path(a.partition("=")[2]) for a in arguments if "--output_dir" in a)
        folder.mkdir(parents=True)
        (folder / "hypotheses.txt").write_text("\n".join([*TARGETS[:3], "4 4 4 4"]) + "\n")
        return {"bleu": 70.0}

    monkeypatch.setattr(unseen_lengths, "run_command", run)
    return found


def test_runs_decode_four_times_longer_sequences_once(
    of: Study, commands: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = write_results_of(of)
    for result in results:
        write_run_of(of, result)
    assert unseen_lengths.results(of) == []
    found = unseen_lengths.run(of)
    longer = of.data_dir / copy_data(24, is_tiny=True).folder
    assert f"--source={longer / 'valid'}.source.txt" in commands[1]
    assert f"--run_dir={of.runs_dir / 'copy_50_k32'}" in commands[1]
    assert [command[0] for command in commands] == [
        "data_prep.copy_task",
        "experiments.evaluate",
    ] * 2
    tested = read_json(of.results_dir / "longer_copy_50_k32.json")
    assert tested["evaluation"] == {"bleu": 70.0, "run_dir": "copy_50_k32"}
    assert [group["longest"] for group in found[0]["unseen"]] == [4, 7, 10, 12]
    assert [group["exact"] for group in found[0]["unseen"]] == [1.0, 1.0, 1.0, 0.0]
    # Existing results are not decoded again, unless the row was trained again.
    assert unseen_lengths.run(of) == unseen_lengths.results(of) == found
    assert len(commands) == 4
    with monkeypatch.context() as patched:
        patched.setattr(unseen_lengths, "FACTOR", 3)  # other test data
        assert unseen_lengths.results(of) == []
    write_json(of.result_path(of.rows[1]), {**results[1], "commit": "another"})
    (of.runs_dir / "copy_50_bahdanau" / "evaluation" / "longer" / "hypotheses.txt").unlink()
    (of.runs_dir / "copy_50_bahdanau" / "evaluation" / "longer").rmdir()
    unseen_lengths.run(of)
    assert len(commands) == 6
    write_page("unseen_lengths", "tiny", of, found, tmp_path / "results")
    page = (tmp_path / "results" / "unseen_lengths_tiny.md").read_text()
    assert "| Model | 4 to 4 symbols | 7 to 7 symbols |" in page
    assert "| Att | 100.00 (100 %) | 100.00 (100 %) | 100.00 (100 %) | 0.00 (0 %) |" in page
    assert_drawn(tmp_path / "results" / "unseen_lengths" / "tiny_by_length.png")


def test_rows_without_a_run_are_left_out(
    of: Study, commands: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    bahdanau, k32 = sorted(write_results_of(of), key=lambda result: result["name"])
    assert unseen_lengths.run(of) == [] == commands
    write_run_of(of, bahdanau, update=2000)  # begun again, and not finished
    write_run_of(of, k32)
    assert [result["name"] for result in unseen_lengths.run(of)] == ["copy_50_k32"]
    assert "copy_50_bahdanau: left out" in capsys.readouterr().err
    assert [command[0] for command in commands] == ["data_prep.copy_task", "experiments.evaluate"]


@pytest.mark.slow
def test_reproduce_trains_tiny_rows_and_decodes_longer_sequences(
    in_this_process: None, tmp_path: Path
) -> None:
    arguments = ["reproduce", "unseen_lengths", "--scale=tiny", "--rows=copy_50_bahdanau"]
    made = run_here(f"experiments.{arguments[0]}", *arguments[1:], f"--work_dir={tmp_path}")
    assert made.returncode == 0, made.stderr
    assert list(json.loads(made.stdout.splitlines()[-1])["rows"]) == ["copy_50_bahdanau"]
    page = (tmp_path / "results" / "unseen_lengths_tiny.md").read_text()
    assert "| Att |" in page

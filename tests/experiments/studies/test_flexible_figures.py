"""Figures 3 and 4 of Flexible Attention, from made-up results."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.reproduction.study import make_study
from experiments.studies import _flexible, flexible_figure3, flexible_figure4
from tests.experiments.row_results import write_run_of
from tests.experiments.studies.flexible_results import WORDS, made_up_results
from tests.pictures import assert_drawn


@pytest.fixture
def results() -> list[dict[str, Any]]:
    return made_up_results()


def test_figure_3_is_of_the_tuned_rows_of_table_1(
    results: list[dict[str, Any]], tmp_path: Path
) -> None:
    of = make_study("flexible_figure3", "small", [], tmp_path, tmp_path / "results")
    assert of.names() == ["multi30k_de_en_flexible_tuned", "tanaka_en_ja_flexible_tuned"]
    table1 = make_study("flexible_table1", "small", [], tmp_path, tmp_path / "results")
    assert [of.result_path(row) for row in of.rows] == list(map(table1.result_path, table1.rows))
    points = flexible_figure3.sweep(results[3], "valid")
    assert [point["threshold"] for point in points] == [*_flexible.THRESHOLDS, None]
    assert points[2] == {"threshold": 0.8, "window": 3.5, "bleu": 29.6, "is_chosen": True}
    page = flexible_figure3.tables(results[3:])
    assert "| 0.8 | 3.50 | 29.60 | 4.00 | 30.60 |" in page
    assert "| ∞ | 12.00 | 31.00 | 12.50 | 32.00 |" in page
    drawn = flexible_figure3.draw(of, results[3:], tmp_path / "small")
    assert list(drawn) == [WORDS]
    assert_drawn(tmp_path / f"small_{WORDS}.png")


def test_all_rows_may_be_asked_for(tmp_path: Path) -> None:
    for name in ("flexible_figure3", "flexible_figure4"):
        assert len(make_study(name, "small", ["all"], tmp_path, tmp_path).names()) == 8
    of = make_study("flexible_figure4", "small", [], tmp_path, tmp_path)
    assert of.names() == ["multi30k_de_en_flexible_tuned"]


def test_figure_4_is_of_long_sentences_and_the_thresholds_of_its_rows(
    results: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = make_study("flexible_figure4", "small", [], tmp_path / "work", tmp_path / "results")
    result, stem = results[3], tmp_path / "small"
    monkeypatch.setattr(flexible_figure4, "run_command", pytest.fail)
    assert flexible_figure4.draw(of, [result], stem) == {}  # there is no run and no picture
    picture = tmp_path / f"small_{result['name']}.png"
    picture.write_bytes(b"before")
    assert list(flexible_figure4.draw(of, [result], stem)) == [result["name"]]

    source = of.data_dir / "multi30k_de_en_words" / "valid.source.txt"
    source.parent.mkdir(parents=True)
    source.write_text("".join("w " * length + "\n" for length in range(1, 101)))
    write_run_of(of, result)
    commands: list[list[str]] = []
    monkeypatch.setattr(flexible_figure4, "run_command", commands.append)
    flexible_figure4.draw(of, [result], stem)
    (command,) = commands
    assert command[0] == "experiments.draw_alignment"
    assert "--threshold=0.8" in command and "τ = 0.8" in flexible_figure4.tables([result])
    assert "τ = ∞" in flexible_figure4.tables([{**result, _flexible.THRESHOLD: None}])
    (lines,) = (argument for argument in command if argument.startswith("--lines="))
    numbers = list(map(int, lines.removeprefix("--lines=").split(",")))
    assert len(set(numbers)) == 6 and min(numbers) > 80 and max(numbers) <= 100
    assert flexible_figure4.long_lines(["a b", "a"]) == [1, 2]
    assert np.diff(numbers).min() > 0

"""The benchmarks of what search writes: in eight bits, and after given beginnings."""

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.benchmarks.half_references import beginnings
from experiments.benchmarks.int8_quality import Decoded, differences
from tests.marks import slow
from tests.running import error_lines, run_here
from tests.texts import write_lines

LINES = ["3 1 4 1 5", "2 7 1", "5 5 2 1 3 4"]


def test_log_probabilities_are_compared_where_translations_are_the_same() -> None:
    first = Decoded(["a", "b", "c"], np.array([-1.0, -2.0, -3.0]))
    second = Decoded(["a", "x", "c"], np.array([-1.5, -9.0, -2.75]))
    assert differences(second, first) == {
        "other_translations": 1,
        "mean_log_prob_difference": -0.125,
        "mean_absolute_log_prob_difference": 0.375,
        "largest_log_prob_difference": 0.5,
    }
    assert differences(second, Decoded(["y"] * 3, first.log_probs)) == {"other_translations": 3}


def test_beginnings_are_halves_quarters_and_nothing() -> None:
    lines = ["a b c d e f g h i"] * 8
    half = "a b c d"
    assert beginnings(lines) == ["", half, half, half, half, "a b", half, ""]


@pytest.mark.parametrize("ways", [["search"], *slow(["search", "export"])])
def test_eight_bits_beside_float32(work: Path, tmp_path: Path, ways: list[str]) -> None:
    path, output = write_lines(tmp_path / "lines.txt", LINES), tmp_path / "quality.json"
    arguments = [
        *("experiments.benchmarks.int8_quality", f"--runs={work / 'run'}", f"--source={path}"),
        *(f"--reference={path}", "--beam_size=3", f"--output={output}"),
    ]
    done = run_here(*arguments, *(["--noexports"] if ways == ["search"] else []))
    assert done.returncode == 0, done.stderr.decode()
    rows = json.loads(output.read_text())["rows"]
    precisions = ("float32", "int8_products")
    expected = [(way, precision) for way in ways for precision in precisions]
    assert [(row["way"], row["precision"]) for row in rows] == expected
    assert all("other_translations" in row for row in rows[1::2])
    assert all((row["way"] == "export") == ("mebibytes" in row) for row in rows)


def test_half_references(work: Path, tmp_path: Path) -> None:
    path, output = write_lines(tmp_path / "lines.txt", ["", *LINES]), tmp_path / "half.json"
    arguments = ["experiments.benchmarks.half_references", f"--runs={work / 'run'}"]
    files = [f"--source={path}", f"--reference={path}"]
    done = run_here(*arguments, *files, f"--output={output}")
    assert done.returncode == 0, done.stderr.decode()
    (row,) = json.loads(output.read_text())["rows"]
    assert row["lines"] == row["begin_as_given"] == row["log_prob_equals_score"] == 3
    missing = run_here(*arguments, f"--source={path}", f"--reference={path}x")
    assert error_lines(missing) == [f"error: {path}x: no such file"]


@pytest.mark.parametrize("name", ["half_references", "int8_quality"])
def test_a_run_that_does_not_exist(tmp_path: Path, name: str) -> None:
    path = write_lines(tmp_path / "lines.txt", LINES)
    done = run_here(
        f"experiments.benchmarks.{name}",
        f"--runs={tmp_path / 'none'}",
        *(f"--source={path}", f"--reference={path}"),
    )
    (line,) = error_lines(done)
    assert "none" in line

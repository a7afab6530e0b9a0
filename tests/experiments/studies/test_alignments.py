"""Figures 6 to 8: the row, the sample, and the error if the run is missing."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from experiments.reproduction.pages import write_page
from experiments.reproduction.rows import Scale, identity
from experiments.reproduction.study import Study, make_study
from experiments.studies import _alignments, figure8, table1, table2
from tests.experiments.row_results import write_results_of, write_run_of
from tests.pictures import assert_drawn
from tests.running import error_lines, run_here

RUNS_OF = {"figure6": "unseen_lengths", "figure7": "figure7", "figure8": "table2"}
ROWS = {
    "figure6": [
        *("copy_50_k32", "copy_100_k32_from_50"),
        *("copy_50_k32_sigmoid_sigmoid", "copy_100_k32_sigmoid_sigmoid_from_50"),
    ],
    "figure7": ["copy_20_k4"],
    "figure8": ["multi30k_en_de_k32_sigmoid_sigmoid"],
}


def tiny(name: str, folder: Path) -> Study:
    return make_study(name, "tiny", [], folder, folder / "results")


@pytest.mark.parametrize("name", ROWS)
def test_a_figure_is_of_a_row_as_in_a_table(name: str, tmp_path: Path) -> None:
    of = tiny(name, tmp_path)
    assert of.names() == ROWS[name]
    assert of.runs_dir == tmp_path / RUNS_OF[name] / "tiny"
    known = (table2 if name == "figure8" else table1).rows("tiny")
    for row in of.rows:
        if name == "figure6" and "sigmoid" in row.name:
            continue
        (like,) = (one for one in known if one.name == row.name.removesuffix("_from_50"))
        assert row == dataclasses.replace(like, name=row.name, init_from=row.init_from)


def test_copies_of_100_begin_with_weights_for_50_which_unseen_lengths_trains(
    tmp_path: Path,
) -> None:
    first, last, *with_sigmoids = make_study("figure6", "small", [], tmp_path, tmp_path).rows
    assert last.init_from == first.name and last.length == 2 * first.length == 100
    assert first in make_study("unseen_lengths", "small", [], tmp_path, tmp_path).rows
    full, full_with_sigmoids = make_study("figure6", "full", [], tmp_path, tmp_path).rows
    assert full == table1.row(100, "k32", "full")
    sigmoids = {"encoder_score": "sigmoid", "decoder_score": "sigmoid"}
    expected = [(one, one.options | sigmoids) for one in (first, last, full)]
    for row, (like, options) in zip([*with_sigmoids, full_with_sigmoids], expected, strict=True):
        name = like.name.replace("k32", "k32_sigmoid_sigmoid")
        start = like.init_from and with_sigmoids[0].name
        label = f"{like.label}, sigmoid / sigmoid"
        assert row == dataclasses.replace(
            like, name=name, options=options, label=label, init_from=start
        )


def test_the_translation_has_two_sigmoids_at_every_scale() -> None:
    scales: tuple[Scale, ...] = ("tiny", "small", "full")
    for scale in scales:
        (row,) = figure8.rows(scale)
        model = identity(row)["configuration"]["model"]
        assert (model["encoder_score"], model["decoder_score"]) == ("sigmoid", "sigmoid")
        assert model["attention"] == "k_memory:32"


def test_the_sample_is_the_first_of_the_longest_that_are_not_too_long() -> None:
    assert _alignments.line_of(["1", "1 2 3", "", "1 2", "3 4"], 2) == 4
    assert _alignments.line_of(["1", "1 2"], 11) == 2


def test_the_command_draws_the_row_by_slot_and_combined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = tiny("figure7", tmp_path)
    results = write_results_of(of)
    (row,) = of.rows
    source = of.data_dir / row.data.folder / "valid.source.txt"
    source.parent.mkdir(parents=True)
    source.write_text("1\n1 2 3\n" + "1 " * 12 + "\n")
    write_run_of(of, results[0])
    commands: list[list[str]] = []
    monkeypatch.setattr(_alignments, "run_command", commands.append)
    write_page("figure7", "tiny", of, results, tmp_path / "results")
    stem = tmp_path / "results" / "figure7" / "tiny_copy_20_k4"
    assert commands == [
        [
            "experiments.draw_alignment",
            f"--run_dir={of.runs_dir / row.name}",
            f"--source={source}",
            "--lines=2",
            f"--output={stem}",
            f"--slots_output={stem}_slots",
            "--max_slots=8",
        ]
    ]
    page = (tmp_path / "results" / "figure7_tiny.md").read_text()
    assert "![The slots used most, K=4](figure7/tiny_copy_20_k4_slots.png)" in page
    assert "![All slots together, K=4](figure7/tiny_copy_20_k4.png)" in page


def test_without_the_run_figures_stay_or_it_is_said_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = tiny("figure6", tmp_path)
    results: list[dict[str, Any]] = write_results_of(of)
    monkeypatch.setattr(_alignments, "run_command", pytest.fail)
    row = of.rows[1]
    with pytest.raises(ValueError) as error:
        write_page("figure6", "tiny", of, results, tmp_path / "results")
    for needed in (of.runs_dir / row.name, "valid.source.txt", of.result_path(row)):
        assert str(needed) in str(error.value)
    assert not (tmp_path / "results" / "figure6_tiny.md").exists()
    drawn = [f"figure6/tiny_{one.name}{end}.png" for one in of.rows[1::2] for end in ("", "_slots")]
    for name in drawn:
        (tmp_path / "results" / name).write_bytes(b"before")
    write_page("figure6", "tiny", of, results, tmp_path / "results")
    page = (tmp_path / "results" / "figure6_tiny.md").read_text()
    assert all(name in page for name in drawn)


@pytest.mark.slow
def test_reproduce_trains_the_tiny_row_and_draws_it(in_this_process: None, tmp_path: Path) -> None:
    arguments = ["experiments.reproduce", "figure7", "--scale=tiny", f"--work_dir={tmp_path}"]
    first = run_here(*arguments)
    assert first.returncode == 0, first.stderr
    found = json.loads(first.stdout.splitlines()[-1])["rows"]
    assert list(found) == ["copy_20_k4"]
    pictures = [
        tmp_path / "results" / "figure7" / f"tiny_copy_20_k4{end}"
        for end in (".png", ".svg", "_slots.png", "_slots.svg")
    ]
    assert_drawn(*pictures)
    # The result exists, but the run is gone: nothing is trained or drawn.
    pictures[0].unlink()
    (tmp_path / "figure7").rename(tmp_path / "elsewhere")
    refused = run_here(*arguments)
    assert refused.returncode == 1
    assert b"finished already" in refused.stderr
    assert "expected the run" in error_lines(refused)[-1]
    # With the run back in its place, the figure is drawn again.
    (tmp_path / "elsewhere").rename(tmp_path / "figure7")
    again = run_here(*arguments, "--only_tables")
    assert json.loads(again.stdout.splitlines()[-1])["rows"] == found
    assert pictures[0].exists()

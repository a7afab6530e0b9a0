"""Figure 2."""

from pathlib import Path

import pytest

from experiments.reproduction.pages import write_page
from experiments.reproduction.rows import Scale
from experiments.reproduction.study import load_definition, make_study
from experiments.studies.figure2 import MAX_SOURCE_LENGTH, NUM_SLOTS, tables


def test_the_surface_needs_no_training_and_is_the_same_at_every_scale(tmp_path: Path) -> None:
    definition, pages = load_definition("figure2"), []
    scales: tuple[Scale, ...] = ("tiny", "full")
    for scale in scales:
        of = make_study("figure2", scale, [], tmp_path, tmp_path / "results")
        (surface,) = definition.results(of)
        write_page("figure2", scale, of, [surface], tmp_path / "results")
        pages.append((tmp_path / "results" / f"figure2_{scale}.md").read_text())
    assert pages[0].replace("tiny", "full") == pages[1]
    pictures = [
        tmp_path / "results" / "figure2" / f"{scale}_k{NUM_SLOTS}_s{MAX_SOURCE_LENGTH}.svg"
        for scale in ("tiny", "full")
    ]
    assert pictures[0].read_bytes() == pictures[1].read_bytes()


def test_the_table_has_the_corners_and_the_stationary_point() -> None:
    page = tables([])
    middle, end = MAX_SOURCE_LENGTH // 2, MAX_SOURCE_LENGTH - 1
    assert f"| L[k, s] | s = 0 | s = {middle} | s = {end} |" in page
    first = (1 - 1 / NUM_SLOTS) * (
        1 - end / MAX_SOURCE_LENGTH
    ) + end / NUM_SLOTS / MAX_SOURCE_LENGTH
    assert f"| k = 1 | {1 - 1 / NUM_SLOTS:.3f} | 0.500 | {first:.3f} |" in page
    assert f"| k = {NUM_SLOTS // 2} | 0.500 | 0.500 | 0.500 |" in page
    assert f"| k = {NUM_SLOTS} | 0.000 | 0.500 | {end / MAX_SOURCE_LENGTH:.3f} |" in page


def test_there_are_no_rows_to_ask_for(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--rows: expected some of"):
        make_study("figure2", "tiny", ["copy_20_k4"], tmp_path, tmp_path)

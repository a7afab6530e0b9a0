"""The README is short, and its commands run in the given order."""

import re
from pathlib import Path

import pytest

from tests.documents import (
    README,
    commands,
    prepare_folder,
    run_commands,
)
from tests.running import ROOT

TEXT = README.read_text(encoding="utf-8")
MOST_LINES = 180


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= MOST_LINES


def test_every_make_target_is_there() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = re.findall(r"^make ([\w-]+)$", TEXT, re.MULTILINE)
    assert len(named) >= 2
    assert set(named) <= set(targets)


def test_the_commands_run_one_after_the_other(tmp_path: Path) -> None:
    prepare_folder(tmp_path)
    assert len(commands(TEXT)) >= 8
    run_commands(TEXT, tmp_path, set())
    assert len((tmp_path / "translations.txt").read_text().splitlines()) == 11
    assert (tmp_path / "alignment.png").exists()


@pytest.mark.parametrize("name", ["README.md", "docs/results.md"])
def test_the_verdicts_are_counted_as_in_the_scoreboard(name: str) -> None:
    scoreboard = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    memory, flexible, _ = (
        [row[4] for line in part.splitlines() if len(row := line.split(" | ")) == 7]
        for part in re.split(r"\n(?:Flexible Attention \(|Longer runs)", scoreboard)
    )
    found = memory[1:]  # without the header
    counts = [found.count(one) for one in ("reproduced", "partly", "not", "undecided")]
    assert "contradicted" not in found  # the sentence says so
    of_flexible = [flexible.count(one) for one in ("reproduced", "partly", "not", "undecided")]
    assert sum(of_flexible) + flexible.count("not run here") == len(flexible[1:])
    text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
    said = re.search(
        r"We tested all (\d+) findings that we take from the paper: (\d+) were reproduced "
        r"\(one concerns Bahdanau's attention alone, one follows from the equations\), (\d+) "
        r"partly, (\d+) was not \(decoding time of translation\), and (\d+) are undecided\. "
        r"None was contradicted, .*? Of (\d+) findings of Shu and Nakayama \(2017\), we tested "
        r"(\d+): (\d+) were reproduced.*?, (\d+) partly, (\d+) was not.*?, and (\d+) are "
        "undecided",
        text,
    )
    assert sum(counts) == len(found)
    expected = [len(found), *counts, len(flexible[1:]), sum(of_flexible), *of_flexible]
    assert said and [*map(int, said.groups())] == expected

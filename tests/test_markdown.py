"""Markdown: lines are short enough to read without scrolling, and tables are rectangular."""

import re
from pathlib import Path

import pytest

from tests.documents import PAGES, lines_outside_code
from tests.running import ROOT

LONGEST = 160  # characters, including table rows
FOLDERS = (".github", "examples", "experiments", "results", "tests")
FILES = [
    *ROOT.glob("*.md"),
    *PAGES,
    *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md")),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_lines_are_short_and_rows_as_wide_as_their_header(path: Path) -> None:
    lines = lines_outside_code(path.read_text(encoding="utf-8"))
    assert [line for line in lines if len(line) > LONGEST] == []
    width = 0
    for line in lines:
        # A bar that is escaped or in code does not end a cell.
        cells = re.sub(r"\\\||`[^`]*`", "", line).count("|") if line.startswith("|") else 0
        assert not cells or cells == (width or cells), line
        width = cells


def test_the_pages_of_results_are_among_them() -> None:
    assert {ROOT / "results" / "README.md", ROOT / "experiments" / "README.md"} <= {*FILES}

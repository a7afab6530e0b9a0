"""Lines of Markdown files are short enough to read without scrolling."""

import re
from pathlib import Path

import pytest

from tests.running import ROOT

LONGEST = 160  # characters, including table rows
FOLDERS = (".github", "examples", "experiments", "results", "tests")
FILES = [
    *(path for path in ROOT.glob("*.md") if path.name != "README.md"),
    *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md")),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_line_outside_of_code_is_long(path: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    assert [line for line in text.splitlines() if len(line) > LONGEST] == []


def test_the_pages_of_results_are_among_them() -> None:
    assert {ROOT / "results" / "README.md", ROOT / "experiments" / "README.md"} <= {*FILES}

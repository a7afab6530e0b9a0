"""The page of all results."""

from pathlib import Path

import pytest

from experiments import results_page, serving_page
from experiments.records import ROOT, write_json
from tests.experiments.row_results import result_of
from tests.running import run_here

MADE = {"command": "python -m C", "commit": "0123456789", "hardware": "H, 2 cores"}
ENTRY = """
[[result]]
files = ["speed/a.json", "speed/b.json"]
shows = '''
{rows[0][seconds]:.1f} s, {files[1][rows][0][seconds] / rows[0][seconds]:.2f} times
as long'''

[[result]]
instead = "no file"
made_by = "`make test`"
shows = "Tests."
"""


def measured(folder: Path, entry: str) -> Path:
    write_json(folder / "speed" / "a.json", {**MADE, "rows": [{"seconds": 2.04}]})
    write_json(folder / "speed" / "b.json", {**MADE, "rows": [{"seconds": 5.1}]})
    (folder / "measured.toml").write_text(entry)
    return folder


def test_words_get_the_figures_of_files_and_where_they_come_from(tmp_path: Path) -> None:
    page = results_page.make_page(measured(tmp_path, ENTRY))
    assert (
        "| [speed/a.json](speed/a.json), [speed/b.json](speed/b.json) "
        "| 2.0 s, 2.50 times as long | `python -m C` on H, 2 cores, commit 0123456789 |" in page
    )
    assert "| no file | Tests. | `make test` |" in page
    assert "[Table 1](table1.md)" not in page
    (tmp_path / "table1.md").touch()
    assert "| [Table 1](table1.md), L = 20" in results_page.make_page(tmp_path)


def test_a_field_that_a_file_has_not_is_named(tmp_path: Path) -> None:
    measured(tmp_path, ENTRY.replace("rows[0][seconds]:", "rows[0][minutes]:"))
    with pytest.raises(ValueError, match=r"measured.toml: speed/a.json, .* field: 'minutes'"):
        results_page.make_page(tmp_path)


def test_rows_have_the_papers_figure_ours_or_the_command_that_gets_it(tmp_path: Path) -> None:
    measured(tmp_path, ENTRY)
    of = results_page._study("table1", "small", tmp_path)
    row = next(row for row in of.rows if row.name == "copy_50_k32")
    write_json(of.result_path(row), result_of(row, 99.86))
    page = results_page.make_page(tmp_path)
    assert "| Table 1, L = 50, K=32 | 99.96 | 99.86 | -0.10 | small |" in page
    command = "python -m experiments.reproduce table1 --scale=small --rows=copy_50_k4"
    line = f"L = 50, K=4 | 99.95 | not run: `{command}`, about 2 hours on a core |"
    assert line in page
    assert "| Table 2, en-de, Att, validation | 28.13 | not run: `python -m experiments" in page
    assert "| Table 3, K=64, time over Att's | 0.82 | not run:" in page


def test_the_projects_own_page_is_what_its_files_give() -> None:
    page = (ROOT / "results" / results_page.PAGE).read_text(encoding="utf-8")
    assert page == results_page.make_page(ROOT / "results")
    page = (ROOT / "results" / serving_page.PAGE).read_text(encoding="utf-8")
    assert page == serving_page.make_page(ROOT / "results")


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    measured(tmp_path, ENTRY)
    done = run_here("experiments.results_page", f"--results_dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "README.md").read_text() == results_page.make_page(tmp_path)

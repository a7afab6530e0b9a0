"""The page of all results."""

from pathlib import Path

from experiments import results_page
from experiments.reproduction.results import ROOT, write_json
from experiments.reproduction.study import make_study
from tests.experiments.row_results import result_of
from tests.running import run_here


def test_rows_have_the_papers_figure_ours_or_the_command_that_gets_it(tmp_path: Path) -> None:
    study = make_study("table1", "small", [], tmp_path, tmp_path)
    row = next(row for row in study.rows if row.name == "copy_50_k32")
    write_json(study.result_path(row), result_of(row, 99.86))
    page = results_page.make_page(tmp_path)
    assert "| Table 1, L = 50, K=32 | 99.96 | 99.86 | -0.10 | small |" in page
    command = "python -m experiments.reproduce table1 --scale=small --rows=copy_50_k4"
    line = f"L = 50, K=4 | 99.95 | not run: `{command}`, about 2 hours on a core |"
    assert line in page
    assert "| Table 2, en-de, Att, validation | 28.13 | not run: `python -m experiments" in page
    assert "| Table 3, K=64, time over Att's | 0.82 | not run:" in page
    assert "| Table 1, Multi30k, German-English, words, tuned | 21.31 | not run:" in page
    (tmp_path / "table1.md").touch()
    assert "| [Table 1](table1.md), L = 20" in results_page.make_page(tmp_path)


def test_the_projects_own_page_is_what_its_files_give() -> None:
    page = (ROOT / "results" / results_page.PAGE).read_text(encoding="utf-8")
    assert page == results_page.make_page(ROOT / "results")


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    done = run_here("experiments.results_page", f"--results_dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "README.md").read_text() == results_page.make_page(tmp_path)

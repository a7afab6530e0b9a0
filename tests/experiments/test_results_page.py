"""All pages of results."""

import re
import shutil
from pathlib import Path

import pytest

from experiments import results_page
from experiments.reproduction.results import ROOT, write_json
from experiments.reproduction.study import make_study, study_names
from seq2seq_memattn import plots
from tests.experiments.row_results import result_of
from tests.running import run_here

OWN = ROOT / "results"


def lines_of(page: str, start: str) -> list[str]:
    """The lines of a page's tables whose second cell begins with `start`."""
    lines = (line.split(" | ") for line in page.splitlines() if line.startswith("| "))
    return [" | ".join(line) for line in lines if line[1].startswith(start)]


def test_without_results_no_claim_of_a_training_or_a_measurement_is_judged(tmp_path: Path) -> None:
    page = results_page.make_page(tmp_path)
    scoreboard = page.partition("## Copy task")[0]
    assert re.search(r"^\| memory paper .* \| (\d+) \| 0 \| 0 \| 0 \| 0 \| 0 \| \1 \|$", page, re.M)
    judged = [line for line in scoreboard.splitlines() if line.startswith(("| Table", "| Figure"))]
    assert len(judged) > 20
    assert [line for line in judged if "| not run here |" not in line] == []
    assert "not run: `python -m experiments.reproduce table1 --scale=small`" in page
    _, _, rules = page.partition("## Verdicts")
    assert rules.count("Reproduced if K = 1 is ahead by more than 1 BLEU at every L") == 1
    assert "\n1. Reproduced if every row is at most 1 BLEU below the paper's" in rules
    assert {line.split(" | ")[5] for line in lines_of(page, "Copies")} == {"1"}
    assert "reproduce table2 --scale=full --source_dir=CORPORA" in page


def test_verdicts_follow_the_rows_and_rows_have_the_papers_figure_and_ours(tmp_path: Path) -> None:
    study = make_study("table1", "small", [], tmp_path, tmp_path)
    rows = {row.name: row for row in study.rows}

    def page_with(*scores: tuple[str, float]) -> str:
        for name, bleu in scores:
            write_json(study.result_path(rows[name]), result_of(rows[name], bleu))
        return results_page.make_page(tmp_path)

    claim = "Copies, K >= 16, L <= 100"
    (line,) = lines_of(page_with(("copy_50_k32", 99.86)), claim)
    assert "| 99.56 to 100.00 | 8 of 9 missing | not run here | 1 |" in line
    wide = [f"copy_{length}_k{slots}" for length in (20, 50, 100) for slots in (16, 32, 64)]
    (line,) = lines_of(page_with(*((name, 99.5) for name in wide)), claim)
    assert "| 99.50 | reproduced | 1 | 5,000 to 6,000; 1 |" in line
    page = page_with(("copy_50_k32", 90.0))
    (line,) = lines_of(page, claim)
    assert "| 90.00 to 99.50 | partly |" in line
    assert "| K=32 | 99.57 | 99.50 | 99.96 | 90.00 | 99.99 | 99.50 | 100.00 | not run |" in page
    assert "[Table 1](table1.md)" not in page
    (tmp_path / "table1.md").touch()
    assert "| [Table 1](table1.md) | Copies" in results_page.make_page(tmp_path)


def test_the_projects_own_pages_are_what_its_files_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = shutil.copytree(OWN, tmp_path / "results", ignore=shutil.ignore_patterns("*.svg"))
    for name in study_names():
        (made / f"{name}.md").unlink(missing_ok=True)
    # Figures are drawn but not written, because their bytes depend on matplotlib's version.
    monkeypatch.setattr(plots, "save", lambda figure, path: [Path(path).with_suffix(".png")])
    written = results_page.write_pages(made)
    assert (made / "README.md") in written
    assert {page.name for page in made.glob("*.md")} == {page.name for page in OWN.glob("*.md")}
    for page in made.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert text == (OWN / page.name).read_text(encoding="utf-8"), page.name
        pictures = [part.partition(")")[0] for part in text.split("](") if ".png" in part]
        assert all((OWN / picture).exists() for picture in pictures), page.name


def test_the_command_writes_the_pages(tmp_path: Path) -> None:
    done = run_here("experiments.results_page", f"--results_dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "README.md").read_text() == results_page.make_page(tmp_path)
    assert {path.name for path in tmp_path.glob("*.md")} == {"README.md", "figure2.md"}


def test_conclusions_leave_it_to_the_page_to_say_what_is_missing() -> None:
    texts = [path.read_text(encoding="utf-8") for path in OWN.glob("*/*_conclusion.md")]
    found = [re.search(r"not\s+(yet\s+)?(been\s+)?(run|trained)\b", text) for text in texts]
    assert texts and found == [None] * len(texts)


@pytest.mark.parametrize("name", study_names())
def test_no_picture_of_a_study_is_left_from_before(name: str) -> None:
    page = OWN / f"{name}.md"
    shown = page.read_text(encoding="utf-8") if page.exists() else ""
    drawn = [path.name for path in (OWN / name).glob("*.png")]
    assert [picture for picture in drawn if f"]({name}/{picture})" not in shown] == []

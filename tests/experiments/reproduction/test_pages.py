"""Parts of the pages of results."""

from pathlib import Path

from experiments.reproduction.pages import numbered, prose, write_page
from experiments.reproduction.study import load_definition, make_study


def test_prose_wraps_paragraphs_and_keeps_tables() -> None:
    table = "| a | b |\n|---|---|\n| 1 | " + "2 " * 60 + "|"
    first, second = prose(f"\n{'word ' * 30}\n\n{table}\n").split("\n\n")
    assert [len(line) <= 100 for line in first.splitlines()] == [True, True]
    assert second == table


def test_a_list_item_is_indented() -> None:
    first, second = numbered(10, "word " * 30).splitlines()
    assert first.startswith("10. word") and second.startswith("    word")


def test_links_of_a_conclusion_fit_its_folder_and_the_page(tmp_path: Path) -> None:
    study = make_study("figure2", "tiny", [], tmp_path, tmp_path)
    (tmp_path / "figure2").mkdir()
    written = "[a](../table1.md), ![b](b.png), [c](https://example.org/c), [d](#repeat)"
    (tmp_path / "figure2" / "tiny_conclusion.md").write_text(written)
    results = load_definition("figure2").results(study)
    page = write_page("figure2", "tiny", study, results, tmp_path).read_text()
    assert "[a](table1.md), ![b](figure2/b.png), [c](https://example.org/c), [d](#repeat)" in page


def test_conclusion_and_one_figure_precede_the_tables(tmp_path: Path) -> None:
    study = make_study("figure2", "tiny", [], tmp_path, tmp_path)
    results = load_definition("figure2").results(study)
    (tmp_path / "figure2").mkdir()
    conclusion = tmp_path / "figure2" / "tiny_conclusion.md"
    picture = "(figure2/tiny_k32_s50.png)"
    for text in ("It is a saddle.", "It is a saddle. ![s](tiny_k32_s50.png)"):
        conclusion.write_text(text)
        page = write_page("figure2", "tiny", study, results, tmp_path).read_text()
        places = [
            page.index(part) for part in ("It is a saddle.", picture, "## Tables", "| L[k, s]")
        ]
        assert places == sorted(places) and page.count(picture) == 1

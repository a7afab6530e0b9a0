"""Writes the page of all results: python -m experiments.results_page --results_dir=results."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.reproduction.pages import markdown_table, table_label
from experiments.reproduction.results import Result, read_json
from experiments.reproduction.rows import Row, Scale
from experiments.reproduction.study import load_definition, make_study
from experiments.studies import _flexible, table2, table3
from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.text.files import open_output

PAGE = "README.md"
INTRODUCTION = """
# Results

What the papers report and what was obtained here. Made from the JSON files beside it by
`python -m experiments.results_page --results_dir=results`; each of them says by which command, from
which commit, on which machine, with which versions and in which time it was obtained. Scale `full`
is the paper's own set-up, `small` what two CPU cores or one GPU train in minutes to hours; the
pages say how they differ. What else was measured is in [benchmarks.md](benchmarks.md).
"""
# What rows take that have no result here.
HOURS = {
    "table1": "about 2 hours on a core",
    "table2": "about 30 hours on a GPU, 1,000,000 updates at 10 a second",
    "table2 small": "about an hour on a core",
    "table3": "half an hour on two cores",
    "flexible_table1": "about half an hour on a core",
    "flexible_table2": "about two hours on a core",
}
FIGURES = ("figure2", "figure3a", "figure3b", "figure4", "figure5", "figure6", "figure7", "figure8")
FLEXIBLE = ("flexible_figure3", "flexible_figure4", "flexible_table3")
PAPERS = ("", "paper", "ours", "difference", "scale")
MINIATURE = ("", "valid BLEU, tokenised", "test BLEU, standard", "test BLEU, tokenised", "updates")

Line = Sequence[str]


def make_page(results_dir: Path) -> str:
    """The page of the results in a folder."""
    sections = [
        INTRODUCTION.strip(),
        "## The memory paper (Britz, Guan, Luong 2017)",
        markdown_table(PAPERS, _memory_paper(results_dir)),
        "## Its Table 2 in miniature: Multi30k and news",
        "Signatures, hours and comparisons: [table2.md](table2.md).",
        markdown_table(MINIATURE, _miniature(results_dir)),
        "## Flexible Attention (Shu, Nakayama 2017)",
        markdown_table(PAPERS, _of_flexible(results_dir)),
    ]
    return "\n\n".join(sections) + "\n"


def _memory_paper(results_dir: Path) -> Iterator[Line]:
    """Table 1 at small scale, Table 2 as the paper has it, Table 3, the figures."""
    table = _linked("Table 1", "table1", results_dir)
    for row, found in _with_results("table1", "small", results_dir):
        name = f"{table}, L = {row.length}, {row.label}"
        missing = _not_run("table1", "small", row.name)
        yield _compared(name, row.paper["bleu"], "bleu", found, "small", missing)
    for row, found in _with_results("table2", "full", results_dir):
        pair = table2.group_title(row.name).partition(", ")[2]
        name = f"Table 2, {pair}, {row.label}, validation"
        missing = _not_run("table2", "full", row.name)
        yield _compared(name, row.paper["bleu"], "bleu", found, "full", missing)
    times = results_dir / "table3" / "small" / table3.TIMES
    measured = read_json(times)["rows"] if times.exists() else []
    seconds = {row["attention"]: row["seconds"] for row in measured}
    table = _linked("Table 3", "table3", results_dir)
    for attention, paper in table3.PAPER.items():
        name = f"{table}, {table_label(attention)}, time over Att's"
        ours = {"ratio": seconds[attention] / seconds["bahdanau"]} if seconds else None
        slowest, missing = table3.PAPER["bahdanau"], _not_run("table3", "small")
        yield _compared(name, paper / slowest, "ratio", ours, "small", missing)
    yield from _figures(FIGURES, results_dir)


def _miniature(results_dir: Path) -> Iterator[Line]:
    """The rows of Table 2 at small scale, of which the paper has none."""
    for row, found in _with_results("table2", "small", results_dir):
        name = f"{table2.group_title(row.name)}, {row.label}"
        if found is None:
            yield name, _not_run("table2", "small", row.name, "table2 small"), "", "", ""
            continue
        standard, tokenised = table2.first_and_last(found)
        tests = f"{standard['standard_bleu']:.2f}", f"{tokenised['bleu']:.2f}"
        yield name, f"{found['bleu']:.2f}", *tests, f"{found['training']['best_update']:,}"


def _of_flexible(results_dir: Path) -> Iterator[Line]:
    """Flexible Attention's rows that are trained, then what is made of them."""
    for study, title in (("flexible_table1", "Table 1"), ("flexible_table2", "Table 2")):
        table = _linked(title, study, results_dir)
        for row, found in _with_results(study, "small", results_dir):
            corpus = _flexible.CORPORA[_flexible.corpus_of(row.name)].title
            missing = _not_run(study, "small", row.name)
            name = f"{table}, {corpus}, {row.label}"
            yield _compared(name, row.paper["bleu"], "bleu", found, "small", missing)
    yield from _figures(FLEXIBLE, results_dir)


def _figures(studies: Sequence[str], results_dir: Path) -> Iterator[Line]:
    for study in studies:
        title = load_definition(study).title.removeprefix("Flexible Attention, ")
        if (results_dir / f"{study}.md").exists():
            yield title, "", f"[{study}.md]({study}.md)", "", "small"
        else:
            yield title, "", _not_run(study, "small"), "", ""


def _linked(title: str, study: str, results_dir: Path) -> str:
    """A title, with a link to its page where there is one."""
    return f"[{title}]({study}.md)" if (results_dir / f"{study}.md").exists() else title


def _with_results(
    name: str, scale: Scale, results_dir: Path
) -> Iterator[tuple[Row, Result | None]]:
    study = make_study(name, scale, [], Path("runs"), results_dir)
    found = {result["name"]: result for result in study.finished()}
    return ((row, found.get(row.name)) for row in study.rows)


def _compared(
    name: str, paper: float, key: str, found: Result | None, scale: str, missing: str
) -> Line:
    """A line: the paper's figure, ours or how to get it, the difference."""
    if found is None:
        return name, f"{paper:.2f}", missing, "", ""
    return name, f"{paper:.2f}", f"{found[key]:.2f}", f"{found[key] - paper:+.2f}", scale


def _not_run(name: str, scale: str, row: str = "", hours: str = "") -> str:
    """How to get what is not there, and how long that takes."""
    command = f"python -m experiments.reproduce {name} --scale={scale}"
    command += f" --rows={row}" if row else ""
    takes = HOURS.get(hours or name)
    return f"not run: `{command}`" + (f", {takes}" if takes else "")


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.string("results_dir", "results", "folder of the results")


def main(arguments: cli.Arguments) -> None:
    """Writes the page from flags."""
    path = Path(arguments.results_dir) / PAGE
    with open_output(str(path)) as stream:
        stream.write(make_page(path.parent))
    cli.print_result({"page": str(path)})


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])

"""Writes the pages of all results: python -m experiments.results_page --results_dir=results.

Every figure on it comes from the JSON files in its folder. What else was measured than tables and
figures of the papers is listed in `measured.toml`, in words that refer to fields of these files,
such as {rows[0][seconds]:.1f}, or to one over another, {rows[1][seconds] / rows[0][seconds]:.2f}.
Beside it stands the page of serving (`serving_page.py`).
"""

import string
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from absl import flags

from experiments import cli, flexible_tables, serving_page, table2, table3
from experiments.copy_rows import label
from experiments.records import read_json
from experiments.reproduce import SUBJECTS
from experiments.study import Row, Study
from experiments.subject import markdown_table
from seq2seq_memattn.text.files import open_output

PAGE = "README.md"
MEASURED = "measured.toml"
INTRODUCTION = """
# Results

What the papers report and what was obtained here, then what else was measured. Made from the JSON
files beside it by `python -m experiments.results_page --results_dir=results`; each of them says by
which command, from which commit, on which machine, with which versions and in which time it was
obtained. Scale `full` is the paper's own set-up, `small` what two CPU cores or one GPU train in
minutes to hours; the pages say how they differ.
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
FIGURES = {
    "figure2": "Figure 2, position encodings",
    "figure3a": "Figure 3a, learning to copy, by model",
    "figure3b": "Figure 3b, learning to copy, by pair of scores",
    "figure4": "Figure 4, learning to translate, by model",
    "figure5": "Figure 5, learning to translate, by pair of scores",
    "figure6": "Figure 6, where 32 slots look at L = 100",
    "figure7": "Figure 7, where 4 slots look at 11 symbols",
    "figure8": "Figure 8, where 32 slots look in a translation",
}
FLEXIBLE_FIGURES = {
    "flexible_figure3": "Figure 3, window against BLEU",
    "flexible_figure4": "Figure 4, spans that are scored",
    "flexible_table3": "Table 3, time along references",
}

MINIATURE = ("", "valid BLEU, tokenised", "test BLEU, standard", "test BLEU, tokenised", "updates")

Line = Sequence[str]


def make_page(results_dir: Path) -> str:
    """The page of the results in a folder.

    Raises:
        ValueError: if `measured.toml` refers to what a file does not have.
    """
    sections = [
        INTRODUCTION.strip(),
        "## The memory paper (Britz, Guan, Luong 2017)",
        markdown_table(("", "paper", "ours", "difference", "scale"), _memory_paper(results_dir)),
        "## Its Table 2 in miniature: Multi30k and news",
        "Signatures, hours and comparisons: [table2.md](table2.md).",
        markdown_table(MINIATURE, _miniature(results_dir)),
        "## Flexible Attention (Shu, Nakayama 2017)",
        markdown_table(("", "paper", "ours", "difference", "scale"), _flexible(results_dir)),
        "## What else was measured",
        markdown_table(("files", "what they show", "made by"), _measured(results_dir)),
    ]
    return "\n\n".join(sections) + "\n"


def _memory_paper(results_dir: Path) -> Iterator[Line]:
    """Table 1 at small scale, Table 2 as the paper has it, Table 3, the figures."""
    of = _study("table1", "small", results_dir)
    for row, found in _with_results(of):
        paper = row.paper["bleu"]
        table = _linked("Table 1", "table1", results_dir)
        name = f"{table}, L = {row.config.split('_')[1]}, {row.label}"
        yield _compared(name, paper, "bleu", found, "small", _not_run("table1", "small", row.name))
    of = _study("table2", "full", results_dir)
    for row, found in _with_results(of):
        pair = table2.group_title(row.name).partition(", ")[2]
        name = f"Table 2, {pair}, {row.label}, validation"
        missing = _not_run("table2", "full", row.name)
        yield _compared(name, row.paper["bleu"], "bleu", found, "full", missing)
    times = results_dir / "table3" / "small" / table3.TIMES
    measured = read_json(times)["rows"] if times.exists() else []
    seconds = {row["attention"]: row["seconds"] for row in measured}
    slowest = table3.PAPER["bahdanau"]
    for attention, paper in table3.PAPER.items():
        name = f"{_linked('Table 3', 'table3', results_dir)}, {label(attention)}, time over Att's"
        ours = {"ratio": seconds[attention] / seconds["bahdanau"]} if seconds else None
        yield _compared(name, paper / slowest, "ratio", ours, "small", _not_run("table3", "small"))
    yield from _figures(FIGURES, results_dir)


def _miniature(results_dir: Path) -> Iterator[Line]:
    """The rows of Table 2 at small scale, of which the paper has none."""
    for row, found in _with_results(_study("table2", "small", results_dir)):
        name = f"{table2.group_title(row.name)}, {row.label}"
        if found is None:
            yield name, _not_run("table2", "small", row.name, "table2 small"), "", "", ""
            continue
        standard, tokenised = table2.first_and_last(found)
        tests = f"{standard['standard_bleu']:.2f}", f"{tokenised['bleu']:.2f}"
        yield name, f"{found['bleu']:.2f}", *tests, f"{found['training']['best_update']:,}"


def _flexible(results_dir: Path) -> Iterator[Line]:
    """Flexible Attention's rows that are trained, then what is made of them."""
    for table in ("flexible_table1", "flexible_table2"):
        for row, found in _with_results(_study(table, "small", results_dir)):
            number = table.removeprefix("flexible_table")
            page = _linked(f"Table {number}", table, results_dir)
            title = flexible_tables.CORPORA[flexible_tables.corpus_of(row.name)].title
            name = f"{page}, {title}, {row.label}"
            missing = _not_run(table, "small", row.name)
            yield _compared(name, row.paper.get("bleu"), "bleu", found, "small", missing)
    yield from _figures(FLEXIBLE_FIGURES, results_dir)


def _figures(titles: dict[str, str], results_dir: Path) -> Iterator[Line]:
    for name, title in titles.items():
        if (results_dir / f"{name}.md").exists():
            yield title, "", f"[{name}.md]({name}.md)", "", "small"
        else:
            yield title, "", _not_run(name, "small"), "", ""


def _linked(title: str, page: str, results_dir: Path) -> str:
    """A title, with a link to its page where there is one."""
    return f"[{title}]({page}.md)" if (results_dir / f"{page}.md").exists() else title


def _study(name: str, scale: str, results_dir: Path) -> Study:
    return SUBJECTS[name].study(scale, ["all"], Path("runs"), results_dir)


def _with_results(of: Study) -> Iterator[tuple[Row, dict[str, Any] | None]]:
    found = {result["name"]: result for result in of.finished()}
    return ((row, found.get(row.name)) for row in of.rows)


def _compared(
    name: str, paper: float | None, key: str, found: Any, scale: str, missing: str
) -> Line:
    """A line: the paper's figure, ours or how to get it, the difference."""
    theirs = "-" if paper is None else f"{paper:.2f}"
    if found is None:
        return name, theirs, missing, "", ""
    difference = "-" if paper is None else f"{found[key] - paper:+.2f}"
    return name, theirs, f"{found[key]:.2f}", difference, scale


def _not_run(name: str, scale: str, row: str = "", hours: str = "") -> str:
    """How to get what is not there, and how long that takes."""
    command = f"python -m experiments.reproduce {name} --scale={scale}"
    command += f" --rows={row}" if row else ""
    takes = HOURS.get(hours or name)
    return f"not run: `{command}`" + (f", {takes}" if takes else "")


def _measured(results_dir: Path) -> Iterator[Line]:
    """The lines of `measured.toml`: words with figures of files, and where these come from."""
    with open(results_dir / MEASURED, "rb") as stream:
        entries = tomllib.load(stream)["result"]
    for entry in entries:
        files = entry.get("files", [])
        contents = [read_json(results_dir / name) for name in files]
        fields = {**(contents[0] if contents else {}), "files": contents}
        try:
            text = _Fields().vformat(" ".join(entry["shows"].split()), (), fields)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(
                f"{results_dir / MEASURED}: {', '.join(files)} has no such field: {error}"
            ) from None
        links = ", ".join(f"[{name}]({name})" for name in files) or entry["instead"]
        yield links, text, entry.get("made_by") or _origin(contents)


class _Fields(string.Formatter):
    """Formats fields, and ratios of two."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        over, slash, under = field_name.partition("/")
        value, key = super().get_field(over.strip(), args, kwargs)
        if slash:
            value /= super().get_field(under.strip(), args, kwargs)[0]
        return value, key


def _origin(contents: Sequence[dict[str, Any]]) -> str:
    """The commands, machines and commits of files."""
    made = dict.fromkeys(
        f"`{found['command']}` on {found['hardware']}, commit {found['commit']}"
        for found in contents
    )
    return "; ".join(made)


def main(arguments: list[str]) -> None:
    """Writes the pages from flags."""
    del arguments
    results_dir = Path(flags.FLAGS.results_dir)
    pages = {PAGE: make_page(results_dir)}
    if (results_dir / serving_page.FOLDER).exists():
        pages[serving_page.PAGE] = serving_page.make_page(results_dir)
    for name, page in pages.items():
        with open_output(str(results_dir / name)) as stream:
            stream.write(page)
    cli.print_result({"pages": [str(results_dir / name) for name in pages]})


if __name__ == "__main__":
    flags.DEFINE_string("results_dir", "results", "folder of the results")
    cli.run(main)

"""What `reproduce` takes by name: a study, and the tables and figures made of its results."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments import study
from experiments.study import Study, trained_on, valid_curves

Results = Sequence[dict[str, Any]]
Groups = Callable[[Results], dict[str, list[dict[str, Any]]]]
Draw = Callable[[Study, Results, Path], dict[str, str]]


class Subject(NamedTuple):
    """What can be reproduced.

    Fields:
        title: of its page.
        introduction: of its page, at a scale.
        study: makes the `Study` from scale, names of rows, work_dir and results_dir.
        extend: adds to a study's finished results what is measured of all of them at once.
        tables: the files made of the results: suffix and text. The first is Markdown.
        draw: draws figures of a study's results into files that begin with a path; returns what
            each shows, by what its file's name ends with.
    """

    title: str
    introduction: Callable[[Any], str]
    study: Callable[[Any, Sequence[str], Path, Path], Study]
    extend: Callable[[Study], list[dict[str, Any]]]
    tables: Callable[[Results], dict[str, str]]
    draw: Draw


def without_rows(name: str) -> Callable[[Any, Sequence[str], Path, Path], Study]:
    """What makes the study of a subject that trains nothing; rows that are named are refused.

    Args:
        name: of the subject.
    """
    return lambda scale, names, *where: study.make_study([], names, f"{name}/{scale}", *where)


def no_figures(of: Study, results: Results, stem: Path) -> dict[str, str]:
    """What draws the figures of a subject that is a table alone."""
    del of, results, stem
    return {}


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, from the cells of its rows."""
    first, *others = (f"| {' | '.join(cells)} |" for cells in (header, *rows))
    return "\n".join([first, "|" + "---|" * len(header), *others])


def learning_curves(groups: Groups, title: Callable[[str], str] | None = None) -> Draw:
    """What draws a figure of learning curves for each group of results.

    Args:
        groups: results by name of their group.
        title: of a group's figure, from that name. None: figures have no titles.
    """

    def draw(of: Study, results: Results, stem: Path) -> dict[str, str]:
        from seq2seq_memattn import plots

        del of
        drawn = {}
        for name, members in groups(results).items():
            heading = title(name) if title else ""
            figure = plots.learning_curves(valid_curves(members), title=heading)
            plots.save(figure, stem.with_name(f"{stem.name}_{name}"))
            drawn[name] = f"Learning curves, {heading or name}"
        return drawn

    return draw


def sources(results: Results) -> dict[str, str]:
    """Where a figure comes from: its rows and the commands that trained them, by suffix of file."""
    rows = [
        [
            result["name"],
            result["label"],
            f"{result['bleu']:.2f}",
            f"{result['training']['best_update']:,}",
            str(result["configuration"]["training"]["seed"]),
            result["commit"],
        ]
        for result in results
    ]
    table = markdown_table(["row", "model", "BLEU", "updates", "seed", "commit"], rows)
    trained = "; ".join(sorted({trained_on(result) for result in results}))
    commands = "\n".join(result["command"] for result in results)
    page = [table, "", f"Trained on: {trained}; by", "", "```", commands, "```"]
    return {".md": "\n".join(page) + "\n"}

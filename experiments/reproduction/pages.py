"""Writes the page of a study, and makes parts of pages: tables, wrapped text, code blocks."""

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from experiments.reproduction.results import Result, Results
from experiments.reproduction.rows import Row, Scale
from experiments.reproduction.study import Study, load_definition, make_study
from seq2seq_memattn.text.files import open_output

Groups = Callable[[Results], dict[str, list[Result]]]
Draw = Callable[[Study, Results, Path], dict[str, str]]

PROSE_WIDTH = 100  # characters
CODE_WIDTH = 96
WITH_CORPORA = (
    "The corpora are read from a folder if you add `--source_dir=CORPORA`; without it, they are "
    "downloaded where that is possible ([details](../docs/reproducing.md#studies))."
)


class MissingRun(ValueError):
    """A figure needs a run that does not exist."""


def write_page(name: str, scale: Scale, study: Study, results: Results, results_dir: Path) -> Path:
    """Writes the page of a study with the tables and figures of finished rows; returns its path.

    The page is `NAME.md` (`NAME_SCALE.md` for scales other than small); its parts are in the folder
    NAME. If NAME/SCALE_conclusion.md exists, the page includes this hand-written text. Links in it
    are relative to its own folder and are rewritten for the page. The conclusion and one figure
    precede the tables; a figure that the conclusion shows is not repeated.
    """
    definition, folder = load_definition(name), results_dir / name
    folder.mkdir(parents=True, exist_ok=True)
    drawn = definition.draw(study, results, folder / scale)
    pictures = [f"![{title}]({name}/{scale}_{end}.png)" for end, title in drawn.items()]
    default = make_study(name, scale, [], results_dir, results_dir)
    named = {_row_of(result) for result in results}
    command = f"python -m experiments.reproduce {name} --scale={scale}"
    if default.rows and not named <= set(default.names()):
        known = [row.name for row in default.rows]
        rows = "all" if named == set(known) else ",".join(one for one in known if one in named)
        command += f" --rows={rows}"
    parts = [f"# {definition.title}", prose(definition.introduction(scale))]
    conclusion = folder / f"{scale}_conclusion.md"
    if conclusion.exists():
        text = _linked_from_above(conclusion.read_text(encoding="utf-8"), name)
        pictures = [one for one in pictures if one.partition("](")[2] not in text]
        parts.append(text)
    if len(pictures) == len(drawn):
        parts += pictures[:1]
        pictures = pictures[1:]
    settings, tables = definition.settings(scale), definition.tables(results)
    heading = "## Tables" if settings or not tables.startswith("## ") else ""
    parts += [heading, settings, tables]
    missing = [row for row in study.rows if row.name in {*study.names()} - named]
    if missing:
        rows = ", ".join(f"`{row.name}`" for row in missing)
        parts.append(prose(f"Rows without a result so far (`--rows=NAME` makes one): {rows}."))
    repeat = ["## How to repeat it"]
    if any(row.data.corpus for row in study.rows if isinstance(row, Row)):
        repeat.append(prose(WITH_CORPORA))
    if not default.rows and definition.run is Study.run:
        if any("file" in one for one in results):
            repeat.append(prose("Repeat the commands that the files above record. Then:"))
        command += " --only_tables --results_dir=results"
    blocks = [part.strip() for part in [*parts, *pictures, *repeat, code_block(command)] if part]
    page = results_dir / f"{name if scale == 'small' else f'{name}_{scale}'}.md"
    _write(page, "\n\n".join(blocks))
    return page


def _linked_from_above(text: str, folder: str) -> str:
    """Rewrites the relative links of a Markdown text in a folder for the folder above."""
    text = re.sub(r"\]\((?![a-z]+:|#|\.\./)", f"]({folder}/", text)
    return text.replace("](../", "](")


def _row_of(result: Result) -> str:
    """The name of the row that a result belongs to; in studies of times, of the part."""
    return str(result.get("part", result["name"]))


def _write(path: Path, text: str) -> None:
    with open_output(str(path)) as stream:
        stream.write(text.rstrip("\n") + "\n")


def short_name(attention: str) -> str:
    """An attention's name for file names, such as k32 for k_memory:32."""
    return attention.replace("k_memory:", "k")


def table_label(attention: str) -> str:
    """An attention's name in the paper's tables."""
    if attention.startswith("k_memory:"):
        return f"K={attention.partition(':')[2]}"
    return {"none": "No Att", "bahdanau": "Att"}.get(attention, attention)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table from the cells of its rows."""
    first, *others = (f"| {' | '.join(cells)} |" for cells in (header, *rows))
    return "\n".join([first, "|" + "---|" * len(header), *others])


def prose(text: str) -> str:
    """Wraps paragraphs at `PROSE_WIDTH`; tables and headings stay as they are."""
    return "\n\n".join(
        one
        if one.startswith(("|", "#"))
        else "\n".join(_wrapped(" ".join(one.split()), PROSE_WIDTH))
        for one in text.strip().split("\n\n")
    )


def numbered(number: int, text: str) -> str:
    """An item of a numbered list, wrapped at `PROSE_WIDTH`."""
    start = f"{number}. "
    return start + f"\n{' ' * len(start)}".join(_wrapped(text, PROSE_WIDTH - len(start)))


def code_block(*commands: str) -> str:
    """Commands in a code block, with long ones on several lines."""
    lines = (" \\\n    ".join(_wrapped(command, CODE_WIDTH)) for command in commands)
    return "\n".join(["```", *lines, "```"])


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def commit_in_words(commit: str) -> str:
    """A commit as text, with the plus sign in words."""
    return commit.replace("+", " with changed files")


def trained_on(result: Result) -> str:
    """The hardware on which a result was trained, and how many rows shared it."""
    jobs, backend = result.get("jobs", 1), result.get("backend")
    at_a_time = f", {jobs} models at the same time" if jobs > 1 else ""
    hardware = result["hardware"].replace("; ", " with ")  # a GPU, and the processor beside it
    return f"{hardware}{f', {backend}' if backend else ''}{at_a_time}"


def trained_at(results: Results) -> str:
    """A sentence that names the machines and commits with which results were trained."""
    commits: dict[str, set[str]] = {}
    for result in results:
        of_result = map(commit_in_words, result["commit"].split(", "))
        commits.setdefault(trained_on(result), set()).update(of_result)
    machines = (
        f"{machine} (commit {', '.join(sorted(of_machine))})"
        for machine, of_machine in sorted(commits.items())
    )
    return f"Trained on: {'; '.join(machines)}."


def sources(results: Results) -> str:
    """The rows of a figure and the machines that trained them."""
    rows = [
        [
            result["name"],
            result["label"],
            f"{result['bleu']:.2f}",
            f"{result['training']['best_update']:,}",
            str(result["configuration"]["training"]["seed"]),
            commit_in_words(result["commit"]),
        ]
        for result in results
    ]
    table = markdown_table(["row", "model", "BLEU", "updates", "seed", "commit"], rows)
    trained = "; ".join(sorted({trained_on(result) for result in results}))
    said = f"Trained on: {trained}. The JSON file of each row records the command that trained it."
    return f"{table}\n\n{prose(said)}\n"


def valid_curves(results: Results) -> dict[str, list[dict[str, Any]]]:
    """The validations of each model with all its seeds, for `plots.learning_curves`."""
    curves: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        points = (point for point in result["curve"] if point["kind"] == "valid")
        curves.setdefault(result["curve_name"], []).extend(points)
    return curves


def learning_curves(
    groups: Groups,
    title: Callable[[str], str],
    order: Sequence[str] = (),
    measure: str = "validation BLEU",
) -> Draw:
    """Returns the `draw` of a study that draws learning curves, one figure per group of results.

    Args:
        groups: returns results by name of their group.
        title: returns the title of a figure from the name of its group.
        order, measure: see `plots.learning_curves`.
    """

    def draw(study: Study, results: Results, stem: Path) -> dict[str, str]:
        from seq2seq_memattn import plots

        del study
        drawn = {}
        for name, members in groups(results).items():
            curves = valid_curves(members)
            figure = plots.learning_curves(curves, title=title(name), order=order, measure=measure)
            plots.save(figure, stem.with_name(f"{stem.name}_{name}"))
            drawn[name] = f"Learning curves, {title(name)}"
        return drawn

    return draw

"""The page of a study, and what pages are made of."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from experiments.reproduction.results import Result, Results
from experiments.reproduction.rows import Scale
from experiments.reproduction.study import Study, load_definition, make_study
from seq2seq_memattn.text.files import open_output

Groups = Callable[[Results], dict[str, list[Result]]]
Draw = Callable[[Study, Results, Path], dict[str, str]]


def write_page(name: str, scale: Scale, study: Study, results: Results, results_dir: Path) -> str:
    """Writes the page of a study's finished rows, with their table and figures; returns the table.

    The page is `NAME.md` (`NAME_SCALE.md` at other scales than small), what it is made of is in the
    folder NAME. What people concluded from it, if they wrote that there, is in SCALE_conclusion.md.
    """
    definition, folder = load_definition(name), results_dir / name
    folder.mkdir(parents=True, exist_ok=True)
    shown, *others = definition.tables(results).items()
    for suffix, text in others:
        _write(folder / f"{scale}{suffix}", text)
    drawn = definition.draw(study, results, folder / scale)
    pictures = [f"![{title}]({name}/{scale}_{end}.png)" for end, title in drawn.items()]
    default = make_study(name, scale, [], results_dir, results_dir)
    named = {_row_of(result) for result in results}
    is_default = not default.rows or named <= set(default.names())
    command = f"python -m experiments.reproduce {name} --scale={scale}"
    command += "" if is_default else " --rows=all"
    introduction = definition.introduction(scale)
    parts = [f"# {definition.title}", introduction, f"Command: `{command}`", shown[1]]
    if missing := [row for row in study.names() if row not in named]:
        parts.append(f"Without a result so far: {', '.join(missing)}.")
    conclusion = folder / f"{scale}_conclusion.md"
    if conclusion.exists():
        parts.append(conclusion.read_text(encoding="utf-8"))
    page = name if scale == "small" else f"{name}_{scale}"
    _write(results_dir / f"{page}.md", "\n\n".join(part.strip() for part in [*parts, *pictures]))
    return shown[1]


def _row_of(result: Result) -> str:
    """Which row of a study a result is of; a part that is timed has several."""
    return str(result.get("part", result["name"]))


def _write(path: Path, text: str) -> None:
    with open_output(str(path)) as stream:
        stream.write(text.rstrip("\n") + "\n")


def short_name(attention: str) -> str:
    """An attention's name in names of files: k32 for k_memory:32."""
    return attention.replace("k_memory:", "k")


def table_label(attention: str) -> str:
    """What the paper's tables call an attention."""
    if attention.startswith("k_memory:"):
        return f"K={attention.partition(':')[2]}"
    return {"none": "No Att", "bahdanau": "Att"}.get(attention, attention)


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, from the cells of its rows."""
    first, *others = (f"| {' | '.join(cells)} |" for cells in (header, *rows))
    return "\n".join([first, "|" + "---|" * len(header), *others])


def trained_on(result: Result) -> str:
    """What a result was trained on; a lone row has all cores."""
    jobs, backend = result.get("jobs", 1), result.get("backend")
    at_a_time = f", {jobs} rows at a time" if jobs > 1 else ""
    return f"{result['hardware']}{f', {backend}' if backend else ''}{at_a_time}"


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


def valid_curves(results: Results) -> dict[str, list[dict[str, Any]]]:
    """The validations of each result, as `plots.learning_curves` takes them."""
    return {
        result["curve_name"]: [point for point in result["curve"] if point["kind"] == "valid"]
        for result in results
    }


def learning_curves(groups: Groups, title: Callable[[str], str] | None = None) -> Draw:
    """What draws a figure of learning curves for each group of results.

    Args:
        groups: results by name of their group.
        title: of a group's figure, from that name. None: figures have no titles.
    """

    def draw(study: Study, results: Results, stem: Path) -> dict[str, str]:
        from seq2seq_memattn import plots

        del study
        drawn = {}
        for name, members in groups(results).items():
            heading = title(name) if title else ""
            figure = plots.learning_curves(valid_curves(members), title=heading)
            plots.save(figure, stem.with_name(f"{stem.name}_{name}"))
            drawn[name] = f"Learning curves, {heading or name}"
        return drawn

    return draw

"""Reproduces a table or a choice: python -m experiments.reproduce table1 --scale=small.

What there is: table1, table2, multi30k_sizes (of Table 2 at small scale), ambiguities.

Scales are full (the paper's set-up), small (what two CPU cores train) and tiny (a trial).
Interrupted, it goes on where it stopped; finished rows are not run again; `--rows` picks some.
Results, one JSON file per row, the table and the curves go to `--results_dir`: by default a folder
beside the runs, so that what is in the project's own `results` is not taken for done.
"""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from absl import flags

from experiments import ambiguities, cli, sizes, table1, table2
from experiments.study import Study, valid_curves
from seq2seq_memattn.data.text_files import open_output


class Subject(NamedTuple):
    """What can be reproduced.

    Fields:
        title: of its page.
        introduction: of its page, at a scale.
        study: makes the `Study` from scale, names of rows, work_dir and results_dir.
        extend: adds to a study's finished results what is measured of all of them at once.
        tables: the files made of the results: suffix and text. The first is Markdown.
        figures: groups of results, each a figure of learning curves, by name.
    """

    title: str
    introduction: Callable[[Any], str]
    study: Callable[[Any, Sequence[str], Path, Path], Study]
    extend: Callable[[Study], list[dict[str, Any]]]
    tables: Callable[[Sequence[dict[str, Any]]], dict[str, str]]
    figures: Callable[[Sequence[dict[str, Any]]], dict[str, list[dict[str, Any]]]]


SUBJECTS = {
    "table1": Subject(
        "Table 1: the copy task",
        table1.introduction,
        table1.make_study,
        table1.extend,
        table1.tables,
        table1.figures,
    ),
    "table2": Subject(
        "Table 2: translation",
        table2.introduction,
        table2.make_study,
        table2.extend,
        table2.tables,
        table2.figures,
    ),
    "multi30k_sizes": Subject(
        "Sizes for Multi30k",
        sizes.introduction,
        sizes.make_study,
        Study.finished,
        sizes.tables,
        sizes.figures,
    ),
    "ambiguities": Subject(
        "What the memory paper leaves open",
        ambiguities.introduction,
        ambiguities.make_study,
        Study.finished,
        ambiguities.tables,
        ambiguities.figures,
    ),
}


def write_results(
    name: str, scale: str, results: Sequence[dict[str, Any]], results_dir: Path
) -> str:
    """Writes the page of finished rows, with their table and figures; returns the table.

    The page is `NAME.md` (`NAME_SCALE.md` at other scales than small), what it is made of is in the
    folder NAME. What people concluded from it, if they wrote that there, is in SCALE_conclusion.md.
    """
    import seq2seq_memattn.plots as plots

    subject, folder = SUBJECTS[name], results_dir / name
    folder.mkdir(parents=True, exist_ok=True)
    shown, *others = subject.tables(results).items()
    for suffix, text in others:
        _write(folder / f"{scale}{suffix}", text)
    pictures = []
    for group, members in subject.figures(results).items():
        plots.save(plots.learning_curves(valid_curves(members)), folder / f"{scale}_{group}")
        pictures.append(f"![Learning curves, {group}]({name}/{scale}_{group}.png)")
    default = subject.study(scale, [], results_dir, results_dir)
    is_default = {result["name"] for result in results} <= set(default.names())
    command = f"python -m experiments.reproduce {name} --scale={scale}"
    command += "" if is_default else " --rows=all"
    parts = [f"# {subject.title}", subject.introduction(scale), f"Command: `{command}`", shown[1]]
    conclusion = folder / f"{scale}_conclusion.md"
    if conclusion.exists():
        parts.append(conclusion.read_text(encoding="utf-8"))
    page = name if scale == "small" else f"{name}_{scale}"
    _write(results_dir / f"{page}.md", "\n\n".join(part.strip() for part in [*parts, *pictures]))
    return shown[1]


def _write(path: Path, text: str) -> None:
    with open_output(str(path)) as stream:
        stream.write(text.rstrip("\n") + "\n")


def main(arguments: list[str]) -> None:
    """Runs a study from flags."""
    options = flags.FLAGS
    if len(arguments) != 1 or arguments[0] not in SUBJECTS:
        raise ValueError(f"expected one of {', '.join(SUBJECTS)}; got {' '.join(arguments)!r}")
    name = arguments[0]
    work_dir = Path(options.work_dir)
    results_dir = Path(options.results_dir) if options.results_dir else work_dir / "results"
    source_dir = Path(options.source_dir) if options.source_dir else None

    study = SUBJECTS[name].study(options.scale, options.rows, work_dir, results_dir)
    study = dataclasses.replace(study, source_dir=source_dir, jobs=options.jobs)
    if not options.only_tables:
        study.run()
    results = SUBJECTS[name].extend(study)
    if not results:
        raise ValueError(
            f"{study.results_dir}: expected results; without --only_tables, they are made"
        )
    cli.print_note(write_results(name, options.scale, results, results_dir))
    cli.print_result({"rows": {result["name"]: result["bleu"] for result in results}})


if __name__ == "__main__":
    flags.DEFINE_enum("scale", "small", ["tiny", "small", "full"], "size of the experiment")
    flags.DEFINE_list("rows", [], "rows to run, or `all`; by default what the scale is meant for")
    flags.DEFINE_bool(
        "only_tables",
        False,
        "train nothing; write tables and figures of the results that are there",
    )
    flags.DEFINE_integer(
        "jobs", 1, "rows trained at a time, each with its share of the cores", lower_bound=1
    )
    flags.DEFINE_string("work_dir", "runs", "where data and runs go")
    flags.DEFINE_string("results_dir", None, "where results go, by default `results` in work_dir")
    flags.DEFINE_string(
        "source_dir", "", "a folder that has the corpora already, each in a folder of its name"
    )
    cli.run(main, accepts_arguments=True)

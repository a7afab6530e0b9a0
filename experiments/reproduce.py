"""Reproduces a table, a figure or a choice: python -m experiments.reproduce table1 --scale=small.

What there is: table1, table2, table3, multi30k_sizes (of Table 2 at small scale), ambiguities;
figure2 and, of rows of these, figure3a, figure3b, figure4, figure5, figure6, figure7 and figure8;
decoding, the speed of each attention; scaling, what more GPUs would bring; unseen_lengths, copies
of longer sequences than a model was trained on; of Shu and Nakayama (2017) flexible_table1,
flexible_table2, flexible_table3, flexible_figure3 and flexible_figure4.

Scales are full (the paper's set-up), small (what two CPU cores train) and tiny (a trial).
Interrupted, it goes on where it stopped; finished rows are not run again; `--rows` picks some.
Results, one JSON file per row, the table and the curves go to `--results_dir`: by default a folder
beside the runs, so that what is in the project's own `results` is not taken for done.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import flags

from experiments import (
    alignment_figures,
    ambiguities,
    cli,
    curve_figures,
    decoding_speed,
    flexible_figures,
    flexible_speed,
    flexible_tables,
    position_figure,
    scaling,
    sizes,
    table1,
    table2,
    table3,
    unseen_lengths,
)
from experiments.study import Study
from experiments.subject import Subject, learning_curves, no_figures
from seq2seq_memattn.text.files import open_output

SUBJECTS = {
    "table1": Subject(
        "Table 1: the copy task",
        table1.introduction,
        table1.make_study,
        table1.extend,
        table1.tables,
        learning_curves(table1.figures),
    ),
    "table2": Subject(
        "Table 2: translation",
        table2.introduction,
        table2.make_study,
        table2.extend,
        table2.tables,
        learning_curves(table2.curves),
    ),
    "multi30k_sizes": Subject(
        "Sizes for Multi30k",
        sizes.introduction,
        sizes.make_study,
        Study.finished,
        sizes.tables,
        learning_curves(sizes.figures),
    ),
    "flexible_table1": Subject(
        "Flexible Attention, Table 1: words",
        flexible_tables.introduction,
        flexible_tables.make_table1,
        flexible_tables.finished,
        flexible_tables.tables,
        learning_curves(flexible_tables.figures),
    ),
    "flexible_table2": Subject(
        "Flexible Attention, Table 2: characters",
        flexible_tables.introduction,
        flexible_tables.make_table2,
        flexible_tables.finished,
        flexible_tables.tables,
        learning_curves(flexible_tables.figures),
    ),
    "flexible_table3": Subject(
        "Flexible Attention, Table 3: decoding speed",
        flexible_speed.introduction,
        flexible_speed.make_table3,
        flexible_speed.extend,
        flexible_speed.tables,
        no_figures,
    ),
    "flexible_figure3": Subject(
        "Flexible Attention, Figure 3: window against BLEU",
        flexible_tables.introduction,
        flexible_figures.make_figure3,
        flexible_tables.finished_chosen,
        flexible_figures.sweep_tables,
        flexible_figures.draw_sweeps,
    ),
    "flexible_figure4": Subject(
        "Flexible Attention, Figure 4: spans of the source that are scored",
        flexible_tables.introduction,
        flexible_figures.make_figure4,
        flexible_tables.finished_chosen,
        flexible_figures.span_tables,
        flexible_figures.draw_spans,
    ),
    "ambiguities": Subject(
        "What the memory paper leaves open",
        ambiguities.introduction,
        ambiguities.make_study,
        Study.finished,
        ambiguities.tables,
        learning_curves(ambiguities.figures),
    ),
    **table3.SUBJECTS,
    **decoding_speed.SUBJECTS,
    **scaling.SUBJECTS,
    **unseen_lengths.SUBJECTS,
    **position_figure.SUBJECTS,
    **curve_figures.SUBJECTS,
    **alignment_figures.SUBJECTS,
}


def write_results(
    name: str, scale: str, of: Study, results: Sequence[dict[str, Any]], results_dir: Path
) -> str:
    """Writes the page of a study's finished rows, with their table and figures; returns the table.

    The page is `NAME.md` (`NAME_SCALE.md` at other scales than small), what it is made of is in the
    folder NAME. What people concluded from it, if they wrote that there, is in SCALE_conclusion.md.
    """
    subject, folder = SUBJECTS[name], results_dir / name
    folder.mkdir(parents=True, exist_ok=True)
    shown, *others = subject.tables(results).items()
    for suffix, text in others:
        _write(folder / f"{scale}{suffix}", text)
    drawn = subject.draw(of, results, folder / scale)
    pictures = [f"![{shown}]({name}/{scale}_{end}.png)" for end, shown in drawn.items()]
    default = subject.study(scale, [], results_dir, results_dir)
    named = {_row_of(result) for result in results}
    is_default = not default.rows or named <= set(default.names())
    command = f"python -m experiments.reproduce {name} --scale={scale}"
    command += "" if is_default else " --rows=all"
    parts = [f"# {subject.title}", subject.introduction(scale), f"Command: `{command}`", shown[1]]
    if missing := _missing(of, results):
        parts.append(f"Without a result so far: {', '.join(missing)}.")
    conclusion = folder / f"{scale}_conclusion.md"
    if conclusion.exists():
        parts.append(conclusion.read_text(encoding="utf-8"))
    page = name if scale == "small" else f"{name}_{scale}"
    _write(results_dir / f"{page}.md", "\n\n".join(part.strip() for part in [*parts, *pictures]))
    return shown[1]


def _row_of(result: dict[str, Any]) -> str:
    """Which row of a study a result is of; a part that is timed has several."""
    return str(result.get("part", result["name"]))


def _missing(of: Study, results: Sequence[dict[str, Any]]) -> list[str]:
    """The chosen rows that have no result."""
    found = {_row_of(result) for result in results}
    return [name for name in of.names() if name not in found]


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
    if study.rows and not results:
        raise ValueError(
            f"{study.results_dir}: expected results; without --only_tables, they are made"
        )
    cli.print_note(write_results(name, options.scale, study, results, results_dir))
    # A table of speed alone has no BLEU.
    figures = {result["name"]: result.get("bleu", result.get("seconds")) for result in results}
    cli.print_result({"rows": figures})


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

"""Reproduces a table: python -m experiments.reproduce table1|table2|ambiguities --scale=small.

Scales are full (the paper's set-up), small (what two CPU cores train) and tiny (a trial).
Interrupted, it goes on where it stopped; finished rows are not run again; `--rows` picks some.
Results, one JSON file per row, the table and the curves go to a folder in `--results_dir`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from absl import flags

from experiments import ambiguities, cli, table1, table2
from experiments.study import Study, valid_curves
from seq2seq_memattn.data.text_files import open_output


class Subject(NamedTuple):
    """What can be reproduced.

    Fields:
        study: makes the `Study` from scale, names of rows, work_dir, results_dir and source_dir.
        extend: adds to a study's finished results what is measured of all of them at once.
        tables: the files made of the results: suffix and text. The first is shown.
        figures: groups of results, each a figure of learning curves, by name.
    """

    study: Callable[[Any, Sequence[str], Path, Path, str], Study]
    extend: Callable[[Study], list[dict[str, Any]]]
    tables: Callable[[Sequence[dict[str, Any]]], dict[str, str]]
    figures: Callable[[Sequence[dict[str, Any]]], dict[str, list[dict[str, Any]]]]


SUBJECTS = {
    "table1": Subject(table1.make_study, table1.extend, table1.tables, table1.figures),
    "table2": Subject(table2.make_study, table2.extend, table2.tables, table2.figures),
    "ambiguities": Subject(
        ambiguities.make_study,
        Study.finished,
        ambiguities.tables,
        ambiguities.figures,
    ),
}


def write_results(
    subject: Subject, scale: str, results: Sequence[dict[str, Any]], folder: Path
) -> str:
    """Writes the tables and figures of finished rows; returns the table that is shown."""
    import seq2seq_memattn.plots as plots

    folder.mkdir(parents=True, exist_ok=True)
    tables = subject.tables(results)
    for suffix, text in tables.items():
        with open_output(str(folder / f"{scale}{suffix}")) as stream:
            stream.write(text)
    for name, group in subject.figures(results).items():
        plots.save(plots.learning_curves(valid_curves(group)), folder / f"{scale}_{name}")
    return next(iter(tables.values()))


def main(arguments: list[str]) -> None:
    """Runs a study from flags."""
    options = flags.FLAGS
    if len(arguments) != 1 or arguments[0] not in SUBJECTS:
        raise ValueError(f"expected one of {', '.join(SUBJECTS)}; got {' '.join(arguments)!r}")
    name = arguments[0]
    subject = SUBJECTS[name]
    results_dir = Path(options.results_dir)
    if options.scale == "tiny":  # a trial of the machinery: no result
        results_dir = Path(options.work_dir) / "tiny_results"
    where = Path(options.work_dir), results_dir, options.source_dir
    study = subject.study(options.scale, options.rows, *where)
    results = study.finished() if options.only_tables else study.run()
    everything = subject.extend(subject.study(options.scale, [], *where))
    cli.print_note(write_results(subject, options.scale, everything, results_dir / name))
    cli.print_result({"rows": {result["name"]: result["bleu"] for result in results}})


if __name__ == "__main__":
    flags.DEFINE_enum("scale", "small", ["tiny", "small", "full"], "size of the experiment")
    flags.DEFINE_list("rows", [], "rows to run, all if not given")
    flags.DEFINE_bool(
        "only_tables",
        False,
        "train nothing; write tables and figures of the results that are there",
    )
    flags.DEFINE_string("work_dir", "runs", "where data and runs go")
    flags.DEFINE_string("results_dir", "results", "where results go")
    flags.DEFINE_string(
        "source_dir", "", "a folder that has the corpora already, each in a folder of its name"
    )
    cli.run(main, accepts_arguments=True)

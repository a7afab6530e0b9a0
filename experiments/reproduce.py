"""Reproduces a table: python -m experiments.reproduce table1|ambiguities --scale=tiny|small|full.

Interrupted, it goes on where it stopped; finished rows are not run again; `--rows` picks some.
Results, one JSON file per row, the table and the curves go to a folder in `--results_dir`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from absl import flags

from experiments import ambiguities, cli, table1
from experiments.study import Study, valid_curves
from seq2seq_memattn.data.text_files import open_output


class Subject(NamedTuple):
    """What can be reproduced.

    Fields:
        study: makes the `Study` from scale, names of rows, work_dir and results_dir.
        extend: adds to finished results, in their folder, what is measured of all of them at once.
        tables: the files made of the results: suffix and text. The first is shown.
        figures: groups of results, each a figure of learning curves, by name.
    """

    study: Callable[[Any, Sequence[str], Path, Path], Study]
    extend: Callable[[Sequence[dict[str, Any]], Path], list[dict[str, Any]]]
    tables: Callable[[Sequence[dict[str, Any]]], dict[str, str]]
    figures: Callable[[Sequence[dict[str, Any]]], dict[str, list[dict[str, Any]]]]


SUBJECTS = {
    "table1": Subject(table1.make_study, table1.add_decoding_times, table1.tables, table1.figures),
    "ambiguities": Subject(
        ambiguities.make_study,
        lambda results, _: list(results),
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
    where = Path(options.work_dir), results_dir
    results = subject.study(options.scale, options.rows, *where).run()
    study = subject.study(options.scale, [], *where)
    everything = subject.extend(study.finished(), study.results_dir)
    cli.print_note(write_results(subject, options.scale, everything, results_dir / name))
    cli.print_result({"rows": {result["name"]: result["bleu"] for result in results}})


if __name__ == "__main__":
    flags.DEFINE_enum("scale", "small", ["tiny", "small", "full"], "size of the experiment")
    flags.DEFINE_list("rows", [], "rows to run, all if not given")
    flags.DEFINE_string("work_dir", "runs", "where data and runs go")
    flags.DEFINE_string("results_dir", "results", "where results go")
    cli.run(main, accepts_arguments=True)

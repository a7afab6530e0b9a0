"""Reproduces a table: python -m experiments.reproduce table1|ambiguities --scale=tiny|small|full.

Interrupted, it goes on where it stopped; finished rows are not run again; `--rows` picks some.
Results, one JSON file per row, the table and the curves go to `--results_dir`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from absl import flags

from experiments import cli
from experiments.ambiguities import ambiguities_markdown, ambiguity_study
from experiments.study import Study, valid_curves
from experiments.table1 import table1_csv, table1_markdown, table1_study
from seq2seq_memattn.data.text_files import open_output

StudyMaker = Callable[[Any, Sequence[str], Path, Path], Study]
STUDIES: dict[str, StudyMaker] = {"table1": table1_study, "ambiguities": ambiguity_study}


def write_table(name: str, scale: str, results: Sequence[dict[str, Any]], folder: Path) -> str:
    """Writes the table and the figure of learning curves of finished rows; returns the table."""
    import seq2seq_memattn.plots as plots

    folder.mkdir(parents=True, exist_ok=True)
    table = table1_markdown(results) if name == "table1" else ambiguities_markdown(results)
    with open_output(str(folder / f"{name}_{scale}.md")) as stream:
        stream.write(table)
    if name == "table1":
        with open_output(str(folder / f"{name}_{scale}.csv")) as stream:
            stream.write(table1_csv(results))
    plots.save(plots.learning_curves(valid_curves(results)), folder / f"{name}_{scale}_curves")
    return table


def main(arguments: list[str]) -> None:
    """Runs a study from flags."""
    options = flags.FLAGS
    if len(arguments) != 1 or arguments[0] not in STUDIES:
        raise ValueError(f"expected one of {', '.join(STUDIES)}; got {' '.join(arguments)!r}")
    name = arguments[0]
    results_dir = Path(options.results_dir)
    if options.scale == "tiny":  # a trial of the machinery: no result
        results_dir = Path(options.work_dir) / "tiny_results"
    study = STUDIES[name](options.scale, options.rows, Path(options.work_dir), results_dir)
    results = study.run()
    everything = STUDIES[name](options.scale, [], Path(options.work_dir), results_dir).finished()
    cli.print_note(write_table(name, options.scale, everything, results_dir))
    cli.print_result({"rows": {result["name"]: result["bleu"] for result in results}})


if __name__ == "__main__":
    flags.DEFINE_enum("scale", "small", ["tiny", "small", "full"], "size of the experiment")
    flags.DEFINE_list("rows", [], "rows to run, all if not given")
    flags.DEFINE_string("work_dir", "runs", "where data and runs go")
    flags.DEFINE_string("results_dir", "results", "where results go")
    cli.run(main, accepts_arguments=True)

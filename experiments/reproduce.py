"""Runs a study: python -m experiments.reproduce table1 --scale=small.

A study is a file in `experiments/studies`: table1 to table3 and figure2 to figure8 of Britz, Guan
and Luong (2017); flexible_table1 to flexible_table3, flexible_figure3 and flexible_figure4 of Shu
and Nakayama (2017); and the further questions multi30k_sizes, ambiguities, one_slot,
unseen_lengths, memory_distillation, decoding and how_much_faster.

The scales are full (the paper's set-up), small (fits two CPU cores) and tiny (a trial). `--rows`
chooses rows of the study's table. Repeat an interrupted command to resume it; finished rows are not
run again. Results (one JSON file per row), tables and curves go to `--results_dir`, by default a
folder beside the runs, so that the project's own results, in `results`, do not count as finished
rows.
"""

import sys
from pathlib import Path

from experiments.reproduction.pages import write_page
from experiments.reproduction.study import load_definition, make_study
from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.notes import print_note


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.positional("STUDY")
    flags.choice("scale", "small", ["tiny", "small", "full"], "size of the study")
    flags.items(
        "rows",
        [],
        "names of the rows of the study to run, separated by commas, or `all`; by default the rows "
        "that the study chooses for this scale",
    )
    flags.boolean(
        "only_tables",
        False,
        "train nothing; write tables and figures from existing results",
    )
    flags.integer(
        "jobs",
        1,
        "rows to train at the same time; on TensorFlow, each gets an equal share of the cores",
        lower_bound=1,
    )
    flags.string("work_dir", "runs", "where data and runs go")
    flags.string("results_dir", None, "where results go, by default `results` in work_dir")
    flags.string(
        "source_dir", "", "folder with the corpora, each in a folder of its name; no downloads"
    )


def main(arguments: cli.Arguments) -> None:
    """Runs the study that the flags name."""
    name, scale = " ".join(arguments.rest), arguments.scale
    definition = load_definition(name)
    work_dir = Path(arguments.work_dir)
    results_dir = Path(arguments.results_dir) if arguments.results_dir else work_dir / "results"
    source_dir = Path(arguments.source_dir) if arguments.source_dir else None
    study = make_study(
        name, scale, arguments.rows, work_dir, results_dir, source_dir, arguments.jobs
    )
    if not arguments.only_tables:
        definition.run(study)
    results = definition.results(study)
    if not results:
        advice = "run without --only_tables to make them"
        if not arguments.only_tables and not study.rows:
            advice = "this study only collects those of others, so name their --results_dir"
        raise ValueError(f"{study.results_dir}: expected results; {advice}")
    page = write_page(name, scale, study, results, results_dir)
    print_note(page.read_text(encoding="utf-8"))
    # Studies of speed have no BLEU.
    figures = {result["name"]: result.get("bleu", result.get("seconds")) for result in results}
    cli.print_result({"rows": figures})


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])

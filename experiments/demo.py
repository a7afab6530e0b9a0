"""A first result from scratch: python -m experiments.demo --run_dir=runs/demo, or `make demo`.

Trains K-memory (32 slots) and Bahdanau attention on a small copy task, and decodes its validation
set with a beam of 10. Prints the rows of Table 1, and draws learning curves, BLEU by source length
and an alignment of each model. Repeat an interrupted command to resume it.
"""

import dataclasses
import sys
from pathlib import Path
from typing import Any

from experiments.reproduction.pages import valid_curves
from experiments.reproduction.results import Result, Results, provenance, read_json, write_json
from experiments.reproduction.rows import copy_data
from experiments.reproduction.study import Study
from experiments.studies import table1
from seq2seq_memattn.attention.registry import label as attention_label
from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.compute.hardware import num_cores
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.runs.alignments import align
from seq2seq_memattn.runs.alignments import draw as draw_alignment

OPTIONS = {
    **table1.SMALL,
    "schedule": "inverse_sqrt",
    "warmup_updates": 200,
    "num_updates": 3000,
    "validate_every": 125,
    "valid_examples": 300,
    "stop_at_bleu": 99.0,  # learned; how long any higher score takes depends on rounding
    "checkpoint_minutes": 1.0,
}
# The better of 1e-3 and 2e-3 for each model, in trials.
RATES = {"k32": 2e-3, "bahdanau": 1e-3}
IN_SUMMARY = (
    "name",
    "label",
    "configuration",
    "bleu",
    "training",
    "decoding_seconds",
    "decoded_on",
    "evaluation",
    "jobs",
    "command",
    "commit",
    "backend",
    "hardware",
    "versions",
)
SAMPLE = "7 3 11 0 19 3 14 8 1 16 5 5 12 9 2"


def demo_study(run_dir: Path, max_length: int, options: dict[str, Any]) -> Study:
    """The two rows of the demo."""
    rows = []
    for name, rate in RATES.items():
        row = table1.row(20, name, "small")
        rows.append(
            dataclasses.replace(
                row,
                name=f"copy_{max_length}_{name}",
                options={**options, "learning_rate": rate},
                data=copy_data(max_length),
                # `row.paper` has the paper's scores for length 20.
                paper=row.paper if max_length == 20 else {},
                length=max_length,
            )
        )
    jobs = min(len(rows), num_cores())
    return Study(rows, run_dir / "runs", run_dir / "rows", run_dir / "data", jobs=jobs)


def draw(run_dir: Path, results: Results, max_length: int) -> list[str]:
    """Draws the figures; returns the names of their files."""
    import seq2seq_memattn.plots as plots
    from seq2seq_memattn.runs.directory import load_run
    from seq2seq_memattn.runs.translator import Translator

    groups = {result["curve_name"]: result["evaluation"]["by_length"] for result in results}
    title = table1.group_title(f"l{max_length}")
    curves = plots.learning_curves(valid_curves(results), title=title)
    plots.save(curves, run_dir / "learning_curves")
    plots.save(plots.bleu_by_length(groups, title), run_dir / "bleu_by_length")
    sample = " ".join(SAMPLE.split()[:max_length])
    names = []
    for result in results:
        name = f"alignment_{result['name']}"
        run = load_run(run_dir / "runs" / result["name"])
        aligned = align(run, Translator(run, return_alignments=True), sample)
        of = f"{title}: {attention_label(result['curve_name'])}"
        draw_alignment({"": aligned}, of, run_dir / name)
        names.append(name)
    return [f"{run_dir / name}.png" for name in ("learning_curves", "bleu_by_length", *names)]


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.string("run_dir", "runs/demo", "where everything goes")
    flags.integer("max_length", 20, "longest sequence of the copy task", lower_bound=1)
    flags.integer("num_updates", None, "updates per model, fewer for a trial", lower_bound=1)


def main(arguments: cli.Arguments) -> None:
    """Runs the demo with the flags."""
    run_dir, max_length = Path(arguments.run_dir), arguments.max_length
    options = dict(OPTIONS)
    if arguments.num_updates:
        options["num_updates"] = arguments.num_updates
    study, rows_dir = demo_study(run_dir, max_length, options), run_dir / "rows"
    for row in study.rows:
        path = study.result_path(row)
        if path.exists() and not study.has_run_of(read_json(path)):
            path.unlink()  # the figures need the run
    trained = study.run()
    table1.time_decoding(trained, rows_dir)
    results: list[Result] = table1.with_decoding_times(trained, rows_dir)
    figures = draw(run_dir, results, max_length)
    print_note(f"\n{table1.tables(results)}")
    for figure in figures:
        print_note(f"figure: {figure}")
    summary = {
        **provenance(results[0]["hardware"]),
        "max_length": max_length,
        "rows": [{name: result[name] for name in IN_SUMMARY} for result in results],
        "figures": figures,
    }
    write_json(run_dir / "result.json", summary)
    cli.print_result(
        {"result": str(run_dir / "result.json"), **{r["name"]: r["bleu"] for r in results}}
    )


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])

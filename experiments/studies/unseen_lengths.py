"""Lengths that were never seen.

Not in the papers: how well models copy sequences that are longer than those they were trained on.
"""

from pathlib import Path
from typing import Any

from experiments.reproduction.jobs import run_command
from experiments.reproduction.pages import markdown_table
from experiments.reproduction.results import Result, Results, provenance, read_json, write_json
from experiments.reproduction.rows import Evaluation, Row, Scale, copy_data, evaluate_arguments
from experiments.reproduction.study import Study
from experiments.studies import table1
from seq2seq_memattn.compute.hardware import processor
from seq2seq_memattn.metrics import bleu_by_length
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.text.files import read_lines

ATTENTIONS = ("k32", "k64", "bahdanau")
TRAINED = 50  # L of the rows, in symbols
FACTOR = 4  # how many times as long the longest of the test is

INTRODUCTION = f"""
Models that are trained as in Table 1, on sequences of at most L = {TRAINED} symbols, copy 1,000 of
at most {FACTOR} L: the validation set of Table 1's L = {FACTOR * TRAINED}, by beam search (10).
BLEU and, behind it, the share of lines that are exactly right, for quarters of these by their
length: the first has lengths that were trained on, the others have not. The paper does not try
this; users will.
"""


def rows(scale: Scale) -> list[Row]:
    """Rows as those of Table 1 of one L, with runs of their own."""
    return [table1.row(TRAINED, name, scale) for name in ATTENTIONS]


def results(study: Study) -> list[Result]:
    """The finished results with the groups of longer sequences, as "unseen".

    Those whose run is elsewhere, and was not tested before, are left out; that is said.

    Raises:
        ValueError: if that leaves none of them.
    """
    by_name = {row.name: row for row in study.rows}
    finished, found = study.finished(), []
    for result in finished:
        row = by_name[result["name"]]
        path, run_dir = study.results_dir / f"longer_{row.name}.json", study.runs_dir / row.name
        if not path.exists() or read_json(path)["tested"] != _identity(result):
            if not run_dir.exists():
                print_note(f"{row.name}: left out, {run_dir} is not there")
                continue
            write_json(path, _test(study, row, result))
        found.append({**result, "unseen": read_json(path)["by_length"]})
    if finished and not found:
        raise ValueError(
            f"{study.runs_dir}: expected the runs of {', '.join(by_name)}; they are made again "
            f"without their results in {study.results_dir}"
        )
    return found


def _identity(result: dict[str, Any]) -> dict[str, Any]:
    """What tells a row's run from one that was trained anew."""
    return {"commit": result["commit"], "bleu": result["bleu"], "command": result["command"]}


def _test(study: Study, row: Row, result: dict[str, Any]) -> dict[str, Any]:
    """Decodes longer sequences with a row's run; what its file says."""
    data = study.prepare(copy_data(FACTOR * row.length, study.scale == "tiny"), run_command)
    run_dir = study.runs_dir / row.name
    print_note(f"{row.name}: decoding sequences of at most {FACTOR * row.length} symbols")
    tested = run_command(evaluate_arguments(Evaluation("longer", "valid"), data, run_dir))
    hypotheses = read_lines(str(run_dir / "evaluation" / "longer" / "hypotheses.txt"))
    references = read_lines(str(data / "valid.target.txt"))
    return {
        **provenance(processor()),
        "tested": _identity(result),
        "evaluation": tested,
        "by_length": bleu_by_length(hypotheses, references, num_groups=FACTOR),
    }


def tables(found: Results) -> dict[str, str]:
    """The table, by suffix of its file."""
    groups = found[0]["unseen"]
    header = ["Model", *(f"{group['shortest']} to {group['longest']} symbols" for group in groups)]
    lines = [
        [
            result["label"],
            *(f"{group['bleu']:.2f} ({100 * group['exact']:.0f} %)" for group in result["unseen"]),
        ]
        for result in found
    ]
    return {".md": markdown_table(header, lines) + "\n"}


def draw(study: Study, found: Results, stem: Path) -> dict[str, str]:
    """The figure of all rows."""
    from seq2seq_memattn import plots

    del study
    groups = {result["curve_name"]: result["unseen"] for result in found}
    figure = plots.bleu_by_length(groups, title=f"Trained on at most {found[0]['length']} symbols")
    plots.save(figure, stem.with_name(f"{stem.name}_by_length"))
    return {"by_length": "BLEU and exact lines by length"}

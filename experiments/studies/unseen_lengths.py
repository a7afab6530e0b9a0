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
How well do models copy longer sequences than they were trained on? Models that are trained as in
Table 1, on at most L = {TRAINED} symbols, copy 1,000 sequences of at most {FACTOR} L: the
validation set of Table 1's L = {FACTOR * TRAINED}, by beam search (10). The table has BLEU and, in
brackets, the share of lines that are exactly right, for quarters of these sequences by length. The
paper does not try this. One seed each.
"""


def rows(scale: Scale) -> list[Row]:
    """Rows as those of Table 1 of one L, with runs of their own."""
    return [table1.row(TRAINED, name, scale) for name in ATTENTIONS]


def run(study: Study) -> Results:
    """Trains the rows, and decodes longer sequences with them.

    A run that is elsewhere, and was not tested before, is left out; that is said.
    """
    by_name = {row.name: row for row in study.rows}
    for result in study.run():
        row = by_name[result["name"]]
        if _tested(study, result) is None:
            if not (study.runs_dir / row.name).exists():
                print_note(f"{row.name}: left out, {study.runs_dir / row.name} is not there")
                continue
            write_json(_path(study, row.name), _test(study, row, result))
    return results(study)


def results(study: Study) -> list[Result]:
    """The finished results that were tested, with the groups of longer sequences as "unseen"."""
    found = ((result, _tested(study, result)) for result in study.finished())
    return [{**result, "unseen": tested["by_length"]} for result, tested in found if tested]


def _path(study: Study, name: str) -> Path:
    return study.results_dir / f"longer_{name}.json"


def _tested(study: Study, result: Result) -> dict[str, Any] | None:
    """What the test of a result's run found; None before it."""
    path = _path(study, result["name"])
    found = read_json(path) if path.exists() else None
    return found if found and found["tested"] == _identity(result) else None


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

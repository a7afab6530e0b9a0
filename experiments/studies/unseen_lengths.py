"""Lengths that were never seen.

Not in the papers: how well do models copy sequences that are longer than those in training?
"""

from pathlib import Path
from typing import Any

from experiments.reproduction.jobs import run_command
from experiments.reproduction.pages import markdown_table, prose, trained_at
from experiments.reproduction.results import (
    Result,
    Results,
    provenance,
    read_json,
    training_of,
    write_json,
)
from experiments.reproduction.rows import DataSource, Evaluation, Row, Scale, copy_data
from experiments.reproduction.study import Study, evaluate
from experiments.studies import table1
from seq2seq_memattn.compute.hardware import processor
from seq2seq_memattn.metrics import are_exact, bleu_by_length
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.text.files import read_lines

ATTENTIONS = ("k32", "k64", "bahdanau")
TRAINED = 50  # L of the rows, in symbols
FACTOR = 4  # the longest test sequence is this many times as long as in training

INTRODUCTION = f"""
How well do models copy longer sequences than they were trained on? Models are trained as in Table
1, on at most L = {TRAINED} symbols. They then copy 1,000 sequences of at most {FACTOR * TRAINED}
symbols, the validation set of Table 1 with L = {FACTOR * TRAINED}, by beam search (beam size 10).
The table has BLEU and, in brackets, the share of lines that are exactly right. The sequences are
divided by length into four groups of about equal size. The paper does not try this. Each model has
one seed.
"""


def rows(scale: Scale) -> list[Row]:
    """Rows of Table 1 with one L, trained separately."""
    return [table1.row(TRAINED, name, scale) for name in ATTENTIONS]


def run(study: Study) -> Results:
    """Trains the rows, and decodes longer sequences with them.

    A row that has a result is left out, with a note, if its run is not here and was not tested
    before.
    """
    by_name = {row.name: row for row in study.rows}
    for result in study.run():
        row = by_name[result["name"]]
        if _tested(study, result) is None:
            if not study.has_run_of(result):
                print_note(f"{row.name}: left out, {study.runs_dir / row.name} is not its run")
                continue
            write_json(_path(study, row.name), _test(study, row, result))
    return results(study)


def results(study: Study) -> list[Result]:
    """The finished results that were tested; "unseen" has their scores on longer sequences."""
    found = ((result, _tested(study, result)) for result in study.finished())
    return [{**result, "unseen": tested["by_length"]} for result, tested in found if tested]


def _path(study: Study, name: str) -> Path:
    return study.results_dir / f"longer_{name}.json"


def _tested(study: Study, result: Result) -> dict[str, Any] | None:
    """The test of a result's run; None if it was not tested."""
    path, data = _path(study, result["name"]), list(_longer(study, result["length"]).command)
    found = read_json(path) if path.exists() else {}
    same = found.get("tested") == training_of(result) and found.get("data", data) == data
    return found if same else None


def _longer(study: Study, length: int) -> DataSource:
    """The data of the test of models that were trained with at most `length` symbols."""
    return copy_data(FACTOR * length, study.scale == "tiny")


def _test(study: Study, row: Row, result: dict[str, Any]) -> dict[str, Any]:
    """Decodes longer sequences with a row's run; returns the content of the file of the test."""
    source = _longer(study, row.length)
    data = study.prepare(source, run_command)
    run_dir = study.runs_dir / row.name
    print_note(f"{row.name}: decoding sequences of at most {FACTOR * row.length} symbols")
    tested = evaluate(run_command, Evaluation("longer", "valid"), data, run_dir)
    hypotheses = read_lines(str(run_dir / "evaluation" / "longer" / "hypotheses.txt"))
    references = read_lines(str(data / "valid.target.txt"))
    return {
        **provenance(processor()),
        "tested": training_of(result),
        "data": list(source.command),
        "evaluation": tested,
        "by_length": bleu_by_length(
            hypotheses, references, are_exact(hypotheses, references), num_groups=FACTOR
        ),
    }


def tables(found: Results) -> str:
    """The table."""
    groups = found[0]["unseen"]
    header = ["Model", *(f"{group['shortest']} to {group['longest']} symbols" for group in groups)]
    lines = [
        [
            result["label"],
            *(f"{group['bleu']:.2f} ({100 * group['exact']:.0f} %)" for group in result["unseen"]),
        ]
        for result in found
    ]
    return f"{markdown_table(header, lines)}\n\n{prose(trained_at(found))}\n"


def draw(study: Study, found: Results, stem: Path) -> dict[str, str]:
    """Draws the figure of all rows."""
    from seq2seq_memattn import plots

    del study
    groups = {result["curve_name"]: result["unseen"] for result in found}
    figure = plots.bleu_by_length(groups, title=f"Trained on at most {found[0]['length']} symbols")
    plots.save(figure, stem.with_name(f"{stem.name}_by_length"))
    return {"by_length": "BLEU and exact lines by length"}

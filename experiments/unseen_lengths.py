"""Beyond the papers: how models that learned to copy fare on lengths that they never saw.

Trains nothing of its own: its rows, with their runs and results, are those of Table 1 of one L.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import cli, study, table1
from experiments.copy_rows import ATTENTIONS, short_name
from experiments.jobs import run_command
from experiments.records import provenance, read_json, write_json
from experiments.study import Evaluation, Row, Scale, Study, copy_data, evaluate_arguments
from experiments.subject import Results, Subject, markdown_table
from seq2seq_memattn.compute.hardware import processor
from seq2seq_memattn.metrics import bleu_by_length
from seq2seq_memattn.text.files import read_lines

TRAINED = 50  # L of the rows, in symbols
FACTOR = 4  # how many times as long the longest of the test is

INTRODUCTION = f"""
Models of Table 1 that were trained on sequences of at most L = {TRAINED} symbols copy 1,000 of at
most {FACTOR} L, the validation set of Table 1's L = {FACTOR * TRAINED}, by beam search (10). BLEU
and, behind it, the share of lines that are exactly right, for quarters of these by their length:
the first has lengths that were trained on, the others have not. The paper does not try this; users
will.
"""


def make_unseen(scale: Scale, names: Sequence[str], *where: Path) -> Study:
    """The rows of Table 1 of one L.

    Args:
        scale, names: as in `table1.make_study`.
        where: work_dir and results_dir.

    Raises:
        ValueError: for a name that is no row of these.
    """
    rows = [table1.table1_row(f"copy_{TRAINED}_{short_name(name)}", scale) for name in ATTENTIONS]
    return study.make_study(rows, names, f"table1/{scale}", *where)


def extend(of: Study) -> list[dict[str, Any]]:
    """The finished results with the groups of longer sequences, as "unseen".

    Those whose run is elsewhere, and was not tested before, are left out; that is said.

    Raises:
        ValueError: if that leaves none of them.
    """
    rows = {row.name: row for row in of.rows}
    results = of.finished()
    found = []
    for result in results:
        row = rows[result["name"]]
        path = of.results_dir / f"longer_{row.name}.json"
        if not path.exists() or read_json(path)["tested"] != _identity(result):
            if not (of.runs_dir / row.name).exists():
                cli.print_note(f"{row.name}: left out, {of.runs_dir / row.name} is not there")
                continue
            write_json(path, _test(of, row, result))
        found.append({**result, "unseen": read_json(path)["by_length"]})
    if results and not found:
        raise ValueError(
            f"{of.runs_dir}: expected the runs of {', '.join(rows)}; they are made again without "
            f"their results in {of.results_dir}"
        )
    return found


def _identity(result: dict[str, Any]) -> dict[str, Any]:
    """What tells a row's run from one that was trained anew."""
    return {"commit": result["commit"], "bleu": result["bleu"], "command": result["command"]}


def _test(of: Study, row: Row, result: dict[str, Any]) -> dict[str, Any]:
    """Decodes longer sequences with a row's run; what its file says."""
    is_tiny = row.data == copy_data(row.length, is_tiny=True)
    data = of.prepare(copy_data(FACTOR * row.length, is_tiny), run_command)
    run_dir = of.runs_dir / row.name
    cli.print_note(f"{row.name}: decoding sequences of at most {FACTOR * row.length} symbols")
    tested = run_command(evaluate_arguments(Evaluation("longer", "valid"), data, run_dir))
    hypotheses = read_lines(str(run_dir / "evaluation" / "longer" / "hypotheses.txt"))
    references = read_lines(str(data / "valid.target.txt"))
    return {
        **provenance(processor()),
        "tested": _identity(result),
        "evaluation": tested,
        "by_length": bleu_by_length(hypotheses, references, num_groups=FACTOR),
    }


def tables(results: Results) -> dict[str, str]:
    """The table, by suffix of its file."""
    groups = results[0]["unseen"]
    header = ["Model", *(f"{group['shortest']} to {group['longest']} symbols" for group in groups)]
    rows = [
        [
            result["label"],
            *(f"{group['bleu']:.2f} ({100 * group['exact']:.0f} %)" for group in result["unseen"]),
        ]
        for result in results
    ]
    return {".md": markdown_table(header, rows) + "\n"}


def draw(of: Study, results: Results, stem: Path) -> dict[str, str]:
    """The figure of all rows."""
    from seq2seq_memattn import plots

    del of
    groups = {result["curve_name"]: result["unseen"] for result in results}
    figure = plots.bleu_by_length(
        groups, title=f"Trained on at most {results[0]['length']} symbols"
    )
    plots.save(figure, stem.with_name(f"{stem.name}_by_length"))
    return {"by_length": "BLEU and exact lines by length"}


SUBJECTS = {
    "unseen_lengths": Subject(
        "Lengths that were never seen",
        lambda scale: INTRODUCTION,
        make_unseen,
        extend,
        tables,
        draw,
    )
}

"""The size of vocabulary and model for Multi30k, chosen on validation for all rows alike.

Each candidate is trained with Bahdanau's attention, the baseline, so that no memory gains by the
choice.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import study, table2
from experiments.study import Row, Scale, Study
from experiments.subject import markdown_table
from experiments.text_rows import WIDTHS

BASELINE = "multi30k_en_de_bahdanau"
# Subwords of the vocabulary of both languages, and units of everything.
CANDIDATES = ((2000, 256), (4000, 256), (8000, 256), (4000, 384))
# Shorter than the rows of Table 2, with as deep a fall of the learning rate.
BUDGET = {"num_updates": 2000, "decay_start": 700, "decay_every": 350}


def introduction(scale: Scale) -> str:
    """What the page says before its table."""
    text = (
        "Multi30k English-German, Bahdanau's attention, one seed: validation BLEU of tokenised text"
    )
    if scale == "tiny":
        return f"{text}."
    return f"{text} (beam 10), {BUDGET['num_updates']:,} updates of 64 sentences."


def make_study(scale: Scale, names: Sequence[str], work_dir: Path, results_dir: Path) -> Study:
    """One row per candidate.

    Args:
        scale, work_dir, results_dir: as in `table1.make_study`; "full" is as "small".
        names: rows to run; all if empty.

    Raises:
        ValueError: for a name that is no row.
    """
    rows = [_row(pieces, units) for pieces, units in CANDIDATES]
    if scale == "tiny":
        rows = [table2.tiny(row) for row in rows]
    return study.make_study(rows, names, f"multi30k_sizes/{scale}", work_dir, results_dir)


def _row(pieces: int, units: int) -> Row:
    label = f"{pieces:,} subwords, {units} units"
    return dataclasses.replace(
        table2.text_row(BASELINE, pieces),
        name=f"pieces{pieces}_units{units}",
        options={**BUDGET, **dict.fromkeys(WIDTHS, units)},
        label=label,
        curve=label,
        tests=(),  # it is validation that chooses
    )


def tables(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The table, by suffix of its file."""
    rows = [
        [
            result["label"],
            f"{result['bleu']:.2f}",
            f"{result['evaluation']['parameters'] / 1e6:.2f} M",
            f"{result['training']['seconds'] / 60:.0f}",
        ]
        for result in results
    ]
    return {".md": markdown_table(["size", "valid BLEU", "parameters", "minutes"], rows) + "\n"}


def figures(results: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """One figure of all."""
    return {"valid": list(results)}

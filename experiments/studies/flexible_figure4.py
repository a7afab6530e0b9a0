"""Flexible Attention, Figure 4: spans of the source that are scored.

Shu and Nakayama (2017): a fine-tuned row of their Table 1.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.reproduction.claims import Claim, Verdict, by_eye
from experiments.reproduction.jobs import run_command
from experiments.reproduction.results import Results
from experiments.reproduction.rows import Scale
from experiments.reproduction.study import Study
from experiments.studies import _flexible, flexible_figure3, flexible_table1
from experiments.studies._flexible import CORPORA, THRESHOLD, corpus_of
from seq2seq_memattn.text.files import read_lines

RUNS_OF = "flexible_table1"
NUM_SENTENCES = 6
LONG = 0.2  # share of the set: the longest sentences, from which some are drawn
JUDGED: Verdict = "partly"

introduction = _flexible.introduction
rows = flexible_table1.rows
results = _flexible.chosen_with_thresholds


def chosen(scale: Scale) -> list[str]:
    """The name of the fine-tuned German-English row of Table 1."""
    return flexible_figure3.chosen(scale)[:1]


def claims(found: Results) -> list[Claim]:
    """The model attends to a large span only occasionally (section 5.2)."""
    return [by_eye("large spans are only occasional", "six sentences", found, JUDGED)]


def tables(found: Results) -> str:
    """The content of the figure in words."""
    lines = [
        f"* {CORPORA[corpus_of(result['name'])].title}: {NUM_SENTENCES} sentences drawn from "
        f"the longest {LONG:.0%} of the validation set, τ = {result[THRESHOLD] or '∞'}."
        for result in found
    ]
    return "\n".join(lines) + "\n"


def draw(study: Study, found: Results, stem: Path) -> dict[str, str]:
    """Draws the alignments of long sentences, with the positions that are not scored.

    If the run is not here, the figure stays as it is.
    """
    by_name, drawn = {row.name: row for row in study.rows}, {}
    for result in found:
        row, path = by_name[result["name"]], stem.with_name(f"{stem.name}_{result['name']}")
        source = study.data_dir / row.data.folder / "valid.source.txt"
        if source.exists() and study.has_run_of(result):
            run_command(
                [
                    "experiments.draw_alignment",
                    f"--run_dir={study.runs_dir / row.name}",
                    f"--threshold={result[THRESHOLD] or 0}",
                    f"--source={source}",
                    f"--lines={','.join(map(str, long_lines(read_lines(str(source)))))}",
                    f"--output={path}",
                ]
            )
        if path.with_suffix(".png").exists():
            corpus = CORPORA[corpus_of(result["name"])].title
            drawn[result["name"]] = (
                f"Source positions scored at each step, {corpus}, fine-tuned, "
                f"τ = {result[THRESHOLD] or '∞'}"
            )
    return drawn


def long_lines(lines: Sequence[str]) -> list[int]:
    """Numbers, from 1, of some of the longest lines, drawn at random with a fixed seed."""
    by_length = sorted(range(len(lines)), key=lambda i: -len(lines[i].split()))
    long = by_length[: max(NUM_SENTENCES, round(LONG * len(lines)))]
    count = min(NUM_SENTENCES, len(long))
    drawn = np.random.default_rng(1234).choice(long, count, replace=False)
    return sorted(int(i) + 1 for i in drawn)

"""Figures 3 and 4 of Shu and Nakayama (2017), of the fine-tuned rows of their Table 1."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.flexible_tables import CORPORA, THRESHOLD, WITHOUT, corpus_of, make_table1
from experiments.jobs import run_command
from experiments.study import Scale, Study
from seq2seq_memattn.text.files import read_lines

NUM_SENTENCES = 6  # of figure 4
LONG = 0.2  # share of the sentences, the longest, that they are of


def make_figure3(scale: Scale, names: Sequence[str], work_dir: Path, results_dir: Path) -> Study:
    """The fine-tuned rows of Table 1, whose runs and results they are.

    Args:
        scale, names, work_dir, results_dir: as in `table1.make_study`.

    Raises:
        ValueError: for a name that is no row.
    """
    of = make_table1(scale, names, work_dir, results_dir)
    tuned = [row.name for row in of.rows if row.init_from]
    return dataclasses.replace(of, chosen=of.chosen if names else tuned)


def make_figure4(scale: Scale, names: Sequence[str], work_dir: Path, results_dir: Path) -> Study:
    """Of the same rows the one of German-English words.

    Args:
        scale, names, work_dir, results_dir: as in `table1.make_study`.

    Raises:
        ValueError: for a name that is no row.
    """
    of = make_figure3(scale, names, work_dir, results_dir)
    return dataclasses.replace(of, chosen=of.chosen if names else of.chosen[:1])


def sweep_tables(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The points of figure 3, a table for each corpus, by suffix of file."""
    parts = []
    for result in results:
        corpus = CORPORA[corpus_of(result["name"])]
        lines = [f"## {corpus.title}, {result['label']}", ""]
        lines += ["| τ | valid window | valid BLEU | test window | test BLEU |", "|" + "---|" * 5]
        for valid, test in zip(sweep(result, "valid"), sweep(result, corpus.test), strict=True):
            threshold = "∞" if valid["threshold"] is None else f"{valid['threshold']}"
            cells = (valid["window"], valid["bleu"], test["window"], test["bleu"])
            lines.append(f"| {threshold} | {' | '.join(f'{cell:.2f}' for cell in cells)} |")
        parts.append("\n".join(lines))
    return {".md": "\n\n".join(parts) + "\n"}


def draw_sweeps(of: Study, results: Sequence[dict[str, Any]], stem: Path) -> dict[str, str]:
    """Draws figure 3: BLEU against the window, a figure for each corpus.

    Args:
        of: `Study`.
        results: of rows of flexible attention.
        stem: begins the figures' files.

    Returns:
        What each shows, by what its file's name ends with.
    """
    from seq2seq_memattn import plots

    del of
    drawn = {}
    for result in results:
        name = corpus_of(result["name"])
        points = {split: sweep(result, split) for split in ("valid", CORPORA[name].test)}
        figure = plots.bleu_by_window(points, CORPORA[name].title)
        plots.save(figure, stem.with_name(f"{stem.name}_{name}"))
        drawn[name] = f"BLEU against the window, {CORPORA[name].title}"
    return drawn


def sweep(result: dict[str, Any], split: str) -> list[dict[str, Any]]:
    """Threshold, window and BLEU of a row on a split, by growing threshold; None, none, is last."""
    points = []
    for name, found in result["tests"].items():
        of, _, threshold = name.rpartition("_")
        if of == split:
            points.append(
                {
                    "threshold": None if threshold == WITHOUT else float(threshold),
                    "window": found["window"],
                    "bleu": found["bleu"],
                }
            )
    return sorted(points, key=lambda point: point["threshold"] or math.inf)


def span_tables(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """What figure 4 is of, by suffix of file."""
    lines = [
        f"* {CORPORA[corpus_of(result['name'])].title}: {NUM_SENTENCES} sentences drawn from "
        f"the longest {LONG:.0%} of the validation set, τ = {result[THRESHOLD] or '∞'}."
        for result in results
    ]
    return {".md": "\n".join(lines) + "\n"}


def draw_spans(of: Study, results: Sequence[dict[str, Any]], stem: Path) -> dict[str, str]:
    """Draws figure 4: where the model looks in long sentences, and what it does not score.

    Where the run is not there any more, the figure stays as it is.

    Args:
        of: `Study`.
        results: of its rows of flexible attention.
        stem: begins the figures' files.

    Returns:
        What each shows, by what its file's name ends with.
    """
    rows, drawn = {row.name: row for row in of.rows}, {}
    for result in results:
        row, path = rows[result["name"]], stem.with_name(f"{stem.name}_{result['name']}")
        source = of.data_dir / row.data.folder / "valid.source.txt"
        if source.exists() and (of.runs_dir / row.name).exists():
            run_command(
                [
                    "experiments.draw_alignment",
                    f"--run_dir={of.runs_dir / row.name}",
                    f"--threshold={result[THRESHOLD] or 0}",
                    f"--source={source}",
                    f"--lines={','.join(map(str, long_lines(read_lines(str(source)))))}",
                    f"--output={path}",
                ]
            )
        if path.with_suffix(".png").exists():
            drawn[result["name"]] = f"Spans of the source that {result['name']} scores"
    return drawn


def long_lines(lines: Sequence[str]) -> list[int]:
    """Numbers, from 1, of some of the longest lines, drawn with a seed."""
    by_length = sorted(range(len(lines)), key=lambda i: -len(lines[i].split()))
    long = by_length[: max(NUM_SENTENCES, round(LONG * len(lines)))]
    count = min(NUM_SENTENCES, len(long))
    drawn = np.random.default_rng(1234).choice(long, count, replace=False)
    return sorted(int(i) + 1 for i in drawn)

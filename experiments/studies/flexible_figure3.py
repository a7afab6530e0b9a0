"""Flexible Attention, Figure 3: window against BLEU.

Shu and Nakayama (2017): the fine-tuned rows of their Table 1.
"""

import math
from pathlib import Path
from typing import Any

from experiments.reproduction.claims import Claim, Verdict, made_by
from experiments.reproduction.pages import markdown_table
from experiments.reproduction.results import Result, Results, grouped
from experiments.reproduction.rows import Scale
from experiments.reproduction.study import Study
from experiments.studies import _flexible, flexible_table1
from experiments.studies._flexible import CORPORA, THRESHOLD, WITHOUT, corpus_of

RUNS_OF = "flexible_table1"
HEADER = ("τ", "valid window", "valid BLEU", "test window", "test BLEU")

introduction = _flexible.introduction
rows = flexible_table1.rows
results = _flexible.chosen_with_thresholds


def chosen(scale: Scale) -> list[str]:
    """The fine-tuned rows."""
    return [row.name for row in rows(scale) if row.init_from]


def claims(found: Results) -> list[Claim]:
    """Half of the window can be dropped."""
    claim = Claim(
        "half of the window can go at little cost",
        "half, words",
        "Reproduced if, on every corpus, half of the window can be dropped at a cost of at most "
        f"{_flexible.LOSS:g} test BLEU; partly if a fifth can; otherwise not.",
    )
    needed = len(chosen("small"))
    if len(found) < needed:
        return [claim.incomplete(len(found), needed)]
    kept, parts = [], []
    for result in found:
        corpus = CORPORA[corpus_of(result["name"])]
        points = sweep(result, corpus.test)
        full = points[-1]
        windows = [p["window"] for p in points if p["bleu"] >= full["bleu"] - _flexible.LOSS]
        kept.append(min(windows) / full["window"])
        parts.append(f"{kept[-1]:.0%} ({corpus.short})")
    verdict: Verdict = "not"
    if max(kept) <= 0.8:
        verdict = "reproduced" if max(kept) <= 0.5 else "partly"
    return [claim.judged(f"kept {', '.join(parts)}", verdict, made_by(found))]


def tables(found: Results) -> str:
    """The points of the figure in a table for each corpus."""
    parts = []
    for result in found:
        corpus, lines = CORPORA[corpus_of(result["name"])], []
        for valid, test in zip(sweep(result, "valid"), sweep(result, corpus.test), strict=True):
            threshold = "∞" if valid["threshold"] is None else f"{valid['threshold']}"
            cells = (valid["window"], valid["bleu"], test["window"], test["bleu"])
            lines.append([threshold, *(f"{cell:.2f}" for cell in cells)])
        parts.append(f"## {corpus.title}, {result['label']}\n\n{markdown_table(HEADER, lines)}")
    return "\n\n".join(parts) + "\n"


def draw(study: Study, found: Results, stem: Path) -> dict[str, str]:
    """Draws BLEU against the window, one figure for each corpus."""
    from seq2seq_memattn import plots

    del study
    drawn = {}
    for name, members in grouped(found, lambda result: corpus_of(result["name"])).items():
        points = {
            f"{split}, fine-tuned" if result["init_from"] else split: sweep(result, split)
            for result in members
            for split in ("valid", CORPORA[name].test)
        }
        title = f"BLEU against the window of flexible attention, {CORPORA[name].title}"
        plots.save(plots.bleu_by_window(points, title), stem.with_name(f"{stem.name}_{name}"))
        drawn[name] = title
    return drawn


def sweep(result: Result, split: str) -> list[dict[str, Any]]:
    """Threshold, window and BLEU of a row on a split, by rising threshold; None comes last."""
    points = []
    for name, found in result["tests"].items():
        of, _, threshold = name.rpartition("_")
        if of == split:
            points.append(
                {
                    "threshold": None if threshold == WITHOUT else float(threshold),
                    "window": found["window"],
                    "bleu": found["bleu"],
                    "is_chosen": threshold == str(result.get(THRESHOLD)),
                }
            )
    return sorted(points, key=lambda point: point["threshold"] or math.inf)

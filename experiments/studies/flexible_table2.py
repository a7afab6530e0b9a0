"""Flexible Attention, Table 2: characters.

Shu and Nakayama (2017).
"""

from pathlib import Path

from experiments.reproduction.claims import Claim
from experiments.reproduction.results import Result, Results
from experiments.reproduction.rows import Row, Scale
from experiments.reproduction.study import Study
from experiments.studies import _flexible, _flexible_claims, _setups, flexible_figure3

CORPUS = "multi30k_de_en_characters"

DATA = (
    (
        "training pairs",
        "1.3 million (ASPEC, English-Japanese)",
        "29,000 (Multi30k, German-English)",
    ),
    ("characters", "100 and 3,000", "80"),
)


def rows(scale: Scale) -> list[Row]:
    """German-English; "full" is the same as "small", because the paper's corpus is not free."""
    return _flexible.rows_of((CORPUS,), scale)


def settings(scale: Scale) -> str:
    """A table of settings, the paper's and ours."""
    return _flexible.settings(rows(scale), _setups.CHARACTERS, DATA)


introduction = _flexible.introduction
results = _flexible.with_thresholds


def tables(found: Results) -> str:
    """The table, then BLEU against the window, for which the paper has no figure of characters."""
    return f"{_flexible.tables(found)}\n{flexible_figure3.tables(_with_windows(found))}"


def draw(study: Study, found: Results, stem: Path) -> dict[str, str]:
    """Draws learning curves, and BLEU against the window before and after fine-tuning."""
    windows = stem.with_name(f"{stem.name}_windows")
    drawn = flexible_figure3.draw(study, _with_windows(found), windows)
    named = {f"windows_{name}": title for name, title in drawn.items()}
    return {**_flexible.draw_curves(study, found, stem), **named}


def _with_windows(found: Results) -> list[Result]:
    return [result for result in found if result["label"] in ("flexible", "tuned")]


def claims(found: Results) -> list[Claim]:
    """The claims for the corpus of characters."""
    return _flexible_claims.claims(found, [CORPUS])

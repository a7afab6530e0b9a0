"""Flexible Attention, Table 2: characters.

Shu and Nakayama (2017).
"""

from experiments.reproduction.claims import Claim
from experiments.reproduction.pages import learning_curves
from experiments.reproduction.results import Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import _flexible, _flexible_claims, _setups

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
tables = _flexible.tables
draw = learning_curves(
    _flexible.curves, _flexible.group_title, measure="mean validation BLEU of sentences"
)


def claims(found: Results) -> list[Claim]:
    """The claims for the corpus of characters."""
    return _flexible_claims.claims(found, [CORPUS])

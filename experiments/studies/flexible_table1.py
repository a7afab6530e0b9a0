"""Flexible Attention, Table 1: words.

Shu and Nakayama (2017).
"""

from experiments.reproduction.claims import Claim
from experiments.reproduction.pages import learning_curves
from experiments.reproduction.results import Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import _flexible, _flexible_claims

SMALL = ("multi30k_de_en", "tanaka_en_ja")


def rows(scale: Scale) -> list[Row]:
    """German-English and English-Japanese; at full scale German-English of WMT'17."""
    corpora = ("wmt17_de_en",) if scale == "full" else SMALL
    return _flexible.rows_of(corpora, scale)


introduction = _flexible.introduction
results = _flexible.with_thresholds
tables = _flexible.tables
draw = learning_curves(
    _flexible.curves, _flexible.group_title, measure="mean validation BLEU of sentences"
)


def claims(found: Results) -> list[Claim]:
    """The claims for the corpora of small scale."""
    return _flexible_claims.claims(found, SMALL)

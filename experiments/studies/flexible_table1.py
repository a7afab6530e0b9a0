"""Flexible Attention, Table 1: words.

Shu and Nakayama (2017).
"""

from experiments.reproduction.claims import Claim
from experiments.reproduction.results import Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import _flexible, _flexible_claims, _setups

SMALL = ("multi30k_de_en", "tanaka_en_ja")

DATA = (
    ("training pairs", "3.8 million (WMT'15); 1.3 million (ASPEC)", "29,000; 50,000"),
    ("vocabularies", "50,000; 80,000 and 40,000", "8,000; 5,000"),
)


def rows(scale: Scale) -> list[Row]:
    """German-English and English-Japanese; at full scale German-English of WMT'17."""
    corpora = ("wmt17_de_en",) if scale == "full" else SMALL
    return _flexible.rows_of(corpora, scale)


def settings(scale: Scale) -> str:
    """A table of settings, the paper's and ours."""
    return _flexible.settings(rows(scale), _setups.WORDS, DATA if scale == "small" else ())


introduction = _flexible.introduction
results = _flexible.with_thresholds
tables = _flexible.tables
draw = _flexible.draw_curves


def claims(found: Results) -> list[Claim]:
    """The claims for the corpora of small scale."""
    return _flexible_claims.claims(found, SMALL)

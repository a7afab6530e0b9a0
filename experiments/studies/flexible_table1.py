"""Flexible Attention, Table 1: words.

Shu and Nakayama (2017).
"""

from experiments.reproduction.pages import learning_curves
from experiments.reproduction.rows import Row, Scale
from experiments.studies import _flexible


def rows(scale: Scale) -> list[Row]:
    """German-English and English-Japanese; at full scale German-English of WMT'17."""
    corpora = ("wmt17_de_en",) if scale == "full" else ("multi30k_de_en", "tanaka_en_ja")
    return _flexible.rows_of(corpora, scale)


introduction = _flexible.introduction
results = _flexible.with_thresholds
tables = _flexible.tables
draw = learning_curves(_flexible.by_corpus)

"""Flexible Attention, Table 2: characters.

Shu and Nakayama (2017).
"""

from experiments.reproduction.pages import learning_curves
from experiments.reproduction.rows import Row, Scale
from experiments.studies import _flexible


def rows(scale: Scale) -> list[Row]:
    """German-English; "full" is as "small", for the paper's corpus is not free."""
    return _flexible.rows_of(("multi30k_de_en_characters",), scale)


introduction = _flexible.introduction
results = _flexible.with_thresholds
tables = _flexible.tables
draw = learning_curves(_flexible.by_corpus)

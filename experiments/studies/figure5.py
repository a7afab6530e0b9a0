"""Figure 5: learning to translate, by pair of scores.

Of the memory paper: curves of rows of Table 2.
"""

from experiments.reproduction.pages import learning_curves, sources
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table2
from experiments.studies._curves import OF_CURVES, by_scores, translation_title

RUNS_OF = "table2"
ROWS: dict[Scale, str] = {
    "full": "wmt17_en_fi_k64",
    "small": "multi30k_en_de_k32",
    "tiny": "multi30k_en_de_k32",
}
INTRODUCTION = f"""
The paper's Figure 5 has learning curves of English-Finnish, K = 64, for the four pairs of scores,
named encoder / decoder: two softmaxes do consistently badly, the other three about equally well.
Here: a row of Table 2 with each pair. The encoder's softmax is over the source unless it is called
"over slots", which is how equation 5 is printed. {OF_CURVES}
"""


def rows(scale: Scale) -> list[Row]:
    """A row of Table 2, the same with the other pairs of scores, and with the printed softmax."""
    (row,) = (row for row in table2.rows(scale) if row.name == ROWS[scale])
    printed = [table2.with_printed_softmax(row, score) for score in ("softmax", "sigmoid")]
    return [row, *table2.with_other_pairs(row), *printed]


tables = sources
draw = learning_curves(by_scores(table2.by_pair), translation_title)

"""Figure 4: learning to translate, by model.

Of the memory paper: curves of rows of Table 2.
"""

from experiments.reproduction.pages import learning_curves, sources
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table2
from experiments.studies._curves import OF_CURVES, translation_title

RUNS_OF = "table2"
FULL = [
    f"wmt17_{pair}_{name}"
    for pair in ("en_fi", "en_tr")
    for name in ("k32_pe", "k64_pe", "bahdanau")
]
SMALL = [f"multi30k_en_de_{name}" for name in table2.MULTI30K_ROWS]
INTRODUCTION = f"""
The paper's Figure 4 has learning curves of English-Finnish and English-Turkish, K-memory with
position encodings, sigmoid while encoding and softmax while decoding, beside attention: with enough
slots K-memory is on a par, and English-Turkish converges very quickly. Here: rows of Table 2; those
of Multi30k have two softmaxes, and position encodings where it is said (PE). {OF_CURVES}
"""


def rows(scale: Scale) -> list[Row]:
    """At full scale the rows of the paper's figure, else Multi30k's."""
    wanted = FULL if scale == "full" else SMALL
    return [row for row in table2.rows(scale) if row.name in wanted]


tables = sources
draw = learning_curves(table2.by_pair, translation_title)

"""Figure 4: learning to translate, by model.

Britz, Guan and Luong (2017): learning curves of rows of Table 2.
"""

from experiments.reproduction.claims import SAME, Claim, from_cases, made_by
from experiments.reproduction.pages import learning_curves, sources
from experiments.reproduction.results import Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table2
from experiments.studies._curves import OF_CURVES
from experiments.studies._translation_claims import PAPER

RUNS_OF = "table2"
FULL = [
    f"wmt17_{pair}_{name}"
    for pair in ("en_fi", "en_tr")
    for name in ("k32_pe", "k64_pe", "bahdanau")
]
SMALL = [
    *(f"multi30k_en_de_{name}" for name in table2.MULTI30K_ROWS),
    *(f"multi30k_en_de_{name}_seed1" for name in table2.SEEDED),
]
INTRODUCTION = f"""
Does K-memory learn to translate as well and as soon as attention? The paper's Figure 4 has learning
curves for English-Finnish and English-Turkish. Its K-memory has position encodings, a sigmoid while
encoding and a softmax while decoding. With enough slots it is on a par with attention, and
English-Turkish converges very quickly. Here: rows of Table 2. Those of Multi30k have two softmaxes,
and position encodings only if marked PE. {OF_CURVES} Bands show the range of two seeds.
"""


def rows(scale: Scale) -> list[Row]:
    """At full scale the rows of the paper's figure, otherwise those of Multi30k."""
    wanted = FULL if scale == "full" else SMALL
    return [row for row in table2.rows(scale) if row.name in wanted]


def claims(found: Results) -> list[Claim]:
    """Reproduced if K = 32 with position encodings ends within `SAME` BLEU of Att."""
    ends = {result["curve_name"]: result for result in found}
    pairs = ("en_fi", "en_tr")
    gaps = [PAPER[pair]["k32_pe"][0] - PAPER[pair]["bahdanau"][0] for pair in pairs]
    what = "K = 32 + PE is on a par with Att"
    paper = f"{gaps[0]:+.2f} en-fi, {gaps[1]:+.2f} en-tr"
    if not {"k_memory:32 + PE", "bahdanau"} <= ends.keys():
        return [Claim(what, paper)]
    compared = [ends[name] for name in ("k_memory:32 + PE", "bahdanau")]
    ours, att = (result["bleu"] for result in compared)
    verdict = from_cases([ours >= att - SAME])
    return [Claim(what, paper, f"{ours - att:+.2f} Multi30k", verdict, made_by(compared))]


tables = sources
draw = learning_curves(table2.curves, table2.group_title)

"""Figure 8: where K = 32 slots look when translating.

Britz, Guan and Luong (2017): the alignment of a row of Table 2.
"""

from experiments.reproduction.claims import Claim, Verdict, by_eye
from experiments.reproduction.pages import sources
from experiments.reproduction.results import Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table2
from experiments.studies._alignments import WHAT, draw_sample

RUNS_OF = "table2"
LENGTH = 12  # words; the paper does not give its sentence
# The figure in results/figure8 shows an alignment, but a blurred one that uses eight slots.
JUDGED: Verdict = "partly"
INTRODUCTION = f"""
Where do 32 slots look when translating? The paper's Figure 8 has the attention scores on an
English-German translation with K = 32 and sigmoids, for single attention vectors and combined.
Here: K = 32 of Table 2 with two sigmoids, on a sentence of {LENGTH} words.

{WHAT}
"""


def rows(scale: Scale) -> list[Row]:
    """The row of Table 2 with K = 32 and two sigmoids."""
    corpus = "wmt17" if scale == "full" else "multi30k"
    known = {row.name: row for row in table2.rows(scale)}
    pairs = table2.with_other_pairs(known[f"{corpus}_en_de_k32"])
    return [row for row in pairs if row.name.endswith("sigmoid_sigmoid")]


def claims(found: Results) -> list[Claim]:
    """Slots look at different places, and together they align target and source."""
    return [by_eye("slots differ, and align when combined", "one sentence", found, JUDGED)]


tables = sources
draw = draw_sample(LENGTH)

"""Figure 7: where K = 4 slots look when copying.

Britz, Guan and Luong (2017): the alignment of a model of Table 1, trained separately.
"""

from experiments.reproduction.claims import Claim, Verdict, by_eye
from experiments.reproduction.pages import sources
from experiments.reproduction.results import Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table1
from experiments.studies._alignments import WHAT, draw_sample

LENGTH = 11  # symbols
# Three of four slots in results/figure7 take one stretch each, the fourth reads the end.
JUDGED: Verdict = "partly"
INTRODUCTION = f"""
Where do 4 slots look when copying? The paper's Figure 7 has the attention scores of K = 4 on a
sample of length 11, with one colour for each attention vector. Each vector attends to one stretch
of the source. Here: K = 4 and L = 20, trained as in Table 1, a sample of {LENGTH} symbols.

{WHAT}
"""


def rows(scale: Scale) -> list[Row]:
    """A row of Table 1."""
    return [table1.row(20, "k4", scale)]


def claims(found: Results) -> list[Claim]:
    """Each slot attends to one stretch of the source."""
    return [by_eye("4 slots share the source in stretches", "one each", found, JUDGED)]


tables = sources
draw = draw_sample(LENGTH)

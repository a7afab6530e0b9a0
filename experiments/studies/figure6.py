"""Figure 6: where K = 32 slots look when copying.

Of the memory paper: the alignment of a row of Table 1.
"""

from experiments.reproduction.pages import sources
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table1
from experiments.studies._alignments import WHAT, draw_sample

RUNS_OF = "table1"
LENGTH = 100  # symbols, as the data set's name says
INTRODUCTION = f"""
The paper's Figure 6 has the attention scores on a sample of the copy task of L = 100, each
attention vector highlighted: with softmax a nearly linear map from source to target, with sigmoid a
memory spread over the source, of which each step reads several contiguous parts. Here: K = 32 of
Table 1, L = 100, softmax for both scores, {LENGTH} symbols. {WHAT}
"""


def rows(scale: Scale) -> list[Row]:
    """A row of Table 1."""
    return [table1.row(100, "k32", scale)]


tables = sources
draw = draw_sample(LENGTH)

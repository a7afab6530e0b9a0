"""Figure 7: where K = 4 slots look when copying.

Of the memory paper: the alignment of a model as in Table 1, with a run of its own.
"""

from experiments.reproduction.pages import sources
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table1
from experiments.studies._alignments import WHAT, draw_sample

LENGTH = 11  # symbols
INTRODUCTION = f"""
The paper's Figure 7 has the attention scores of K = 4 on a sample of length 11, each attention
vector in a colour of its own: each attends to a stretch of the source. Here: K = 4, trained as in
Table 1, L = 20, {LENGTH} symbols. {WHAT}
"""


def rows(scale: Scale) -> list[Row]:
    """A row as in Table 1."""
    return [table1.row(20, "k4", scale)]


tables = sources
draw = draw_sample(LENGTH)

"""Figure 3b: learning to copy, by pair of scores.

Of the memory paper: curves of rows of `ambiguities`.
"""

from experiments.reproduction.pages import learning_curves, sources
from experiments.reproduction.rows import Row, Scale
from experiments.studies import ambiguities, table1
from experiments.studies._curves import OF_CURVES, by_scores, copy_title

RUNS_OF = "ambiguities"
# Those of `ambiguities` with equation 5 as it is by default.
PAIRS = (
    "softmax_time_softmax",
    "softmax_time_sigmoid",
    "sigmoid_softmax",
    "sigmoid_sigmoid",
)
INTRODUCTION = f"""
The paper's Figure 3b has learning curves on the copy task for the four pairs of scores, named
encoder / decoder: all fit the data, and some converge sooner. It names neither L nor K. Here: rows
of `ambiguities`, L = 20; the encoder's softmax is over the source, which is the default.
{OF_CURVES}
"""


def rows(scale: Scale) -> list[Row]:
    """The rows of `ambiguities` that differ in their pairs of scores alone."""
    wanted = {f"k{slots}_{pair}" for slots in ambiguities.SLOTS for pair in PAIRS}
    return [row for row in ambiguities.rows(scale) if row.name in wanted]


tables = sources
draw = learning_curves(by_scores(table1.by_length), copy_title)

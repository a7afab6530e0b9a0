"""Figure 3a: learning to copy, by model.

Of the memory paper: curves of rows of Table 1.
"""

from collections.abc import Sequence

from experiments.reproduction.pages import learning_curves, sources
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table1
from experiments.studies._curves import OF_CURVES, copy_title

RUNS_OF = "table1"
INTRODUCTION = f"""
The paper's Figure 3a has learning curves on copies of sequences of at most 200 symbols: with K = 32
and 64 the data are fitted almost as quickly as with attention, with K = 1 they are not, and small K
is close to no attention. Here: the rows of Table 1 of the largest L at which all began with random
weights and not with those of a shorter L. {OF_CURVES}
"""


def rows(scale: Scale) -> list[Row]:
    """The rows of Table 1 of the largest length that was trained from scratch."""
    return longest_from_scratch(table1.rows(scale))


def longest_from_scratch(known: Sequence[Row]) -> list[Row]:
    """Of rows of Table 1 those of the largest L, at any scale, but none that begin with others."""
    by_length: dict[int, list[Row]] = {}
    for row in known:
        if not row.init_from:
            by_length.setdefault(int(row.config.split("_")[1]), []).append(row)
    return by_length[max(by_length)]


tables = sources
draw = learning_curves(table1.by_length, copy_title)

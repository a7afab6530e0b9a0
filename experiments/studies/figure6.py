"""Figure 6: where K = 32 slots look when copying.

Of the memory paper: the alignment of a model as in Table 1, with a run of its own.
"""

import dataclasses

from experiments.reproduction.claims import Claim, Verdict, by_eye
from experiments.reproduction.pages import sources
from experiments.reproduction.results import Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table1
from experiments.studies._alignments import WHAT, draw_sample

RUNS_OF = "unseen_lengths"  # which trains the model that this one begins with
LENGTH, SHORTER = 100, 50  # symbols
JUDGED: Verdict = "not judged yet"
INTRODUCTION = f"""
Where do 32 slots look when copying? The paper's Figure 6 has the attention scores on a sample of
the copy task of L = 100, each attention vector highlighted: with softmax a nearly linear map from
source to target, with sigmoid a memory spread over the source, of which each step reads several
contiguous parts. Here: K = 32, trained as in Table 1 but, at small scale, from the weights for L =
{SHORTER} on; L = {LENGTH}, softmax for both scores, {LENGTH} symbols.

{WHAT}
"""


def rows(scale: Scale) -> list[Row]:
    """A row as in Table 1, and at smaller scales before it the one with whose weights it begins."""
    row = table1.row(LENGTH, "k32", scale)
    if scale == "full":
        return [row]
    first = table1.row(SHORTER, "k32", scale)
    name = f"{row.name}_from_{SHORTER}"
    return [first, dataclasses.replace(row, name=name, init_from=first.name)]


def claims(found: Results) -> list[Claim]:
    """A nearly linear map from source to target."""
    drawn = [result for result in found if result["length"] == LENGTH]
    return [by_eye("32 slots copy along a linear map", "with softmax", drawn, JUDGED)]


tables = sources
draw = draw_sample(LENGTH)

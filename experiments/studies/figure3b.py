"""Figure 3b: learning to copy, by pair of scores.

Britz, Guan and Luong (2017): learning curves of rows of `ambiguities`.
"""

from experiments.reproduction.claims import Claim, from_cases, made_by, span
from experiments.reproduction.pages import learning_curves, sources
from experiments.reproduction.results import Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import ambiguities, table1
from experiments.studies._curves import OF_CURVES, PAIRS_IN_ORDER, by_scores

RUNS_OF = "ambiguities"
# The rows of `ambiguities` with the default axis of equation 5.
PAIRS = (
    "softmax_time_softmax",
    "softmax_time_sigmoid",
    "sigmoid_softmax",
    "sigmoid_sigmoid",
)
INTRODUCTION = f"""
Do all four pairs of scores, named encoder / decoder, learn to copy? In the paper's Figure 3b all
pairs fit the data, and some converge sooner; the paper gives neither L nor K. Here: rows of
`ambiguities` with L = 20 and the encoder's softmax over the source, the default. {OF_CURVES}
"""


def rows(scale: Scale) -> list[Row]:
    """The rows of `ambiguities` that differ only in their pairs of scores."""
    wanted = {f"k{slots}_{pair}" for slots in ambiguities.SLOTS for pair in PAIRS}
    return [row for row in ambiguities.rows(scale) if row.name in wanted]


FITTED = 99.0  # BLEU


def claims(found: Results) -> list[Claim]:
    """Reproduced if each pair fits the data with each K, partly if some do."""
    what, paper = "all pairs of scores learn to copy", "all four"
    if not found:
        return [Claim(what, paper)]
    fits = [result["bleu"] >= FITTED for result in found]
    bleu = span([result["bleu"] for result in found])
    here = f"{sum(fits)} of {len(fits)} reach {FITTED:.0f}; {bleu}"
    return [Claim(what, paper, here, from_cases(fits), made_by(found))]


tables = sources
draw = learning_curves(by_scores(table1.by_length), table1.group_title, PAIRS_IN_ORDER)

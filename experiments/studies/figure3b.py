"""Figure 3b: learning to copy, by pair of scores.

Britz, Guan and Luong (2017): learning curves of rows of `ambiguities`.
"""

from experiments.reproduction.claims import (
    FEW_UPDATES,
    Claim,
    from_cases,
    made_by,
    span,
    unless_short,
)
from experiments.reproduction.pages import learning_curves, sources
from experiments.reproduction.results import Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import ambiguities, table1
from experiments.studies._copy_claims import PAPER_UPDATES
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
`ambiguities` with L = 20, trained as in Table 1 but for 2,000 updates at most; the paper trains for
200,000. The encoder's softmax is over the source, the default; equation 5 is printed with a softmax
over the slots. {OF_CURVES}
"""


def rows(scale: Scale) -> list[Row]:
    """The rows of `ambiguities` that differ only in their pairs of scores."""
    wanted = {f"k{slots}_{pair}" for slots in ambiguities.SLOTS for pair in PAIRS}
    return [row for row in ambiguities.rows(scale) if row.name in wanted]


FITTED = 99.0  # BLEU


def claims(found: Results) -> list[Claim]:
    """All pairs of scores fit the data."""
    claim = Claim(
        "all pairs of scores learn to copy",
        "all four",
        f"Reproduced if every pair reaches {FITTED:g} BLEU with every K, partly if some do; "
        f"otherwise not, or undecided after {FEW_UPDATES}.",
    )
    needed = len(ambiguities.SLOTS) * len(PAIRS)
    if len(found) < needed:
        return [claim.incomplete(len(found), needed)]
    fits = [result["bleu"] >= FITTED for result in found]
    bleu = span([result["bleu"] for result in found])
    here = f"{sum(fits)} of {len(fits)} reach {FITTED:.0f}; {bleu}"
    verdict = unless_short(from_cases(fits), found, PAPER_UPDATES)
    return [claim.judged(here, verdict, made_by(found))]


tables = sources
draw = learning_curves(by_scores(table1.by_length), table1.group_title, PAIRS_IN_ORDER)

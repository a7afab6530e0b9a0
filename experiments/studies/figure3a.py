"""Figure 3a: learning to copy, by model.

Britz, Guan and Luong (2017): learning curves of rows of Table 1.
"""

from experiments.reproduction.claims import FEW_UPDATES, Claim, from_cases, is_short, made_by, span
from experiments.reproduction.pages import learning_curves, sources
from experiments.reproduction.results import Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table1
from experiments.studies._copy_claims import PAPER_UPDATES
from experiments.studies._curves import OF_CURVES
from seq2seq_memattn.presets.copy_task import LENGTHS

RUNS_OF = "table1"
INTRODUCTION = f"""
How quickly do models learn to copy, by number of slots? The paper's Figure 3a has learning curves
on copies of at most 200 symbols. According to the paper, models with K = 32 and 64 fit the data
almost as quickly as attention, K = 1 does not fit them, and small K performs like no attention. The
paper's Table 1 is kinder to small K: at L = 200, no attention has 32.6 BLEU, K = 1 has 44.2 and
K = 4 has 98.5. Here: the rows of Table 1 with the largest L at which all rows start from random
weights. {OF_CURVES}
"""


def rows(scale: Scale) -> list[Row]:
    """The rows of Table 1 with the largest L."""
    return [row for row in table1.rows(scale) if row.name.startswith(f"copy_{LENGTHS[-1]}_")]


LEARNED = 90.0  # BLEU


def claims(found: Results) -> list[Claim]:
    """One slot does not learn to copy.

    That many slots learn almost as quickly as attention is not judged: an axis of 200,000 updates
    is too coarse to tell how quickly.
    """
    claim = Claim(
        "K = 1 does not learn to copy",
        "close to no attention",
        f"Reproduced if K = 1 stays below {LEARNED:g} BLEU, otherwise not. A low score after "
        f"{FEW_UPDATES} leaves this undecided.",
    )
    rows = [result for result in found if result["curve_name"] == "k_memory:1"]
    if not rows:
        return [claim]
    verdict = from_cases([row["bleu"] < LEARNED for row in rows])
    if verdict == "reproduced" and is_short(rows, PAPER_UPDATES):
        verdict = "undecided"
    return [claim.judged(span([row["bleu"] for row in rows], ".1f"), verdict, made_by(rows))]


tables = sources
draw = learning_curves(table1.by_length, table1.group_title)

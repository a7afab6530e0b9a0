"""Figure 3a: learning to copy, by model.

Britz, Guan and Luong (2017): learning curves of rows of Table 1.
"""

import itertools
import math

from experiments.reproduction.claims import (
    FEW_UPDATES,
    OR_SHORT,
    Claim,
    Verdict,
    from_cases,
    is_short,
    made_by,
    span,
    unless_short,
)
from experiments.reproduction.pages import learning_curves, sources
from experiments.reproduction.results import Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table1
from experiments.studies._copy_claims import PAPER_UPDATES
from experiments.studies._curves import OF_CURVES, updates_to
from seq2seq_memattn.presets.copy_task import LENGTHS

RUNS_OF = "table1"
INTRODUCTION = f"""
How quickly do models learn to copy, by number of slots? The paper's Figure 3a has learning curves
on copies of at most 200 symbols. According to the paper, models with K = 32 and 64 fit the data
almost as quickly as attention, K = 1 does not fit them, and small K performs like no attention. The
paper's Table 1 is kinder to small K: at L = 200, no attention has 32.6 BLEU, K = 1 has 44.2 and
K = 4 has 98.5. Here: the rows of Table 1 with L = {LENGTHS[-1]}. {OF_CURVES}
"""


def rows(scale: Scale) -> list[Row]:
    """The rows of Table 1 with the largest L."""
    return [row for row in table1.rows(scale) if row.name.startswith(f"copy_{LENGTHS[-1]}_")]


LEARNED = 90.0  # BLEU


def claims(found: Results) -> list[Claim]:
    """Slots learn to copy: many almost as quickly as attention, more sooner than few, one never."""
    return [_quick(found), _more_slots(found), _one_slot(found)]


def _quick(found: Results) -> Claim:
    claim = Claim(
        "K = 32 and 64 learn almost as quickly as Att",
        "almost",
        f"Always undecided: the paper's curves, over {PAPER_UPDATES:,} updates, do not show how "
        f"much later K-memory learns. We count updates until validation BLEU reaches {LEARNED:g}.",
    )
    rows = {result["curve_name"]: result for result in found}
    names = ("k_memory:32", "k_memory:64", "bahdanau")
    if missing := set(names) - set(rows):
        return claim.incomplete(len(names) - len(missing), len(names))
    updates = [updates_to(rows[name]["curve"], LEARNED) for name in names]
    *ours, other = ("never" if update is None else f"{update:,}" for update in updates)
    here = f"{LEARNED:g} BLEU at update {' and '.join(ours)}; Att {other}"
    return claim.judged(here, "undecided", made_by([rows[name] for name in names]))


def _more_slots(found: Results) -> Claim:
    claim = Claim(
        "the larger K, the sooner it learns",
        "faster convergence",
        f"We count updates until validation BLEU reaches {LEARNED:g}. Reproduced if each K takes "
        "fewer than the next smaller one, partly if the largest takes fewer than the smallest, "
        f"otherwise not. {OR_SHORT} The finding is about the beginning of training, so short "
        "trainings may confirm it.",
    )
    rows = {result["curve_name"]: result for result in found}
    names = [f"k_memory:{slots}" for slots in (1, 4, 16, 32, 64)]
    if missing := set(names) - set(rows):
        return claim.incomplete(len(names) - len(missing), len(names))
    updates = [updates_to(rows[name]["curve"], LEARNED) for name in names]
    taken = [math.inf if update is None else update for update in updates]
    verdict: Verdict = "not"
    if taken[-1] < taken[0]:
        is_strict = all(more < fewer for fewer, more in itertools.pairwise(taken))
        verdict = "reproduced" if is_strict else "partly"
    ours = [rows[name] for name in names]
    verdict = unless_short(verdict, ours, PAPER_UPDATES)
    said = ["never" if update is None else f"{update:,}" for update in updates]
    return claim.judged(", ".join(said), verdict, made_by(ours))


def _one_slot(found: Results) -> Claim:
    claim = Claim(
        "K = 1 does not learn to copy",
        "close to no attention",
        f"Reproduced if K = 1 stays below {LEARNED:g} BLEU, otherwise not. A low score after "
        f"{FEW_UPDATES} leaves this undecided.",
    )
    rows = [result for result in found if result["curve_name"] == "k_memory:1"]
    if not rows:
        return claim
    verdict = from_cases([row["bleu"] < LEARNED for row in rows])
    if verdict == "reproduced" and is_short(rows, PAPER_UPDATES):
        verdict = "undecided"
    none = [row["bleu"] for row in found if row["curve_name"] == "none"]
    here = span([row["bleu"] for row in rows], ".1f")
    here += f"; no attention {span(none, '.1f')}" if none else ""
    return claim.judged(here, verdict, made_by(rows))


tables = sources
draw = learning_curves(table1.by_length, table1.group_title)

"""Figure 3a: learning to copy, by model.

Britz, Guan and Luong (2017): learning curves of rows of Table 1.
"""

import math
from collections.abc import Sequence

from experiments.reproduction.claims import Claim, from_cases, made_by, several
from experiments.reproduction.pages import learning_curves, sources
from experiments.reproduction.results import Result, Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table1
from experiments.studies._curves import OF_CURVES, updates_to

RUNS_OF = "table1"
INTRODUCTION = f"""
How quickly do models learn to copy, by number of slots? The paper's Figure 3a has learning curves
on copies of at most 200 symbols. Models with K = 32 and 64 fit the data almost as quickly as
attention. The model with K = 1 does not fit them, and small K is close to no attention. Here: the
rows of Table 1 with the largest L at which all rows start from random weights. {OF_CURVES}
"""


def rows(scale: Scale) -> list[Row]:
    """The rows of Table 1 of the largest length that was trained from scratch."""
    return longest_from_scratch(table1.rows(scale))


def longest_from_scratch(known: Sequence[Row]) -> list[Row]:
    """The rows of Table 1 with the largest L, without those that start from other rows' weights."""
    by_length: dict[int, list[Row]] = {}
    for row in known:
        if not row.init_from:
            by_length.setdefault(int(row.config.split("_")[1]), []).append(row)
    return by_length[max(by_length)]


LEARNED = 90.0  # BLEU


def claims(found: Results) -> list[Claim]:
    """Two claims: many slots soon learn to copy, and one slot does not."""
    rows = {result["curve_name"]: result for result in found}
    return [_many_slots(rows), _one_slot(rows)]


def _many_slots(rows: dict[str, Result]) -> Claim:
    """Reproduced if both K reach `LEARNED` BLEU within twice the updates of Att."""
    what, paper = "K = 32, 64 learn about as soon as Att", "almost as quickly"
    names = ("k_memory:32", "k_memory:64", "bahdanau")
    if not rows.keys() >= {*names}:
        return Claim(what, paper)
    updates = [updates_to(rows[name]["curve"], LEARNED) for name in names]
    *ours, att = (math.inf if one is None else one for one in updates)
    here = f"{several(ours, ',')} updates; Att {att:,}"
    verdict = from_cases([one <= 2 * att for one in ours])
    return Claim(what, paper, here, verdict, made_by([rows[name] for name in names]))


def _one_slot(rows: dict[str, Result]) -> Claim:
    """Reproduced if K = 1 stays below `LEARNED`, and at most 10 BLEU ahead of no attention."""
    what, paper = "K = 1 does not learn to copy", "close to no attention"
    if not rows.keys() >= {"k_memory:1", "none"}:
        return Claim(what, paper)
    both = [rows[name] for name in ("k_memory:1", "none")]
    one, none = (row["bleu"] for row in both)
    verdict = from_cases([one < LEARNED, one <= none + 10.0])
    return Claim(what, paper, f"{one:.1f}; no attention {none:.1f}", verdict, made_by(both))


tables = sources
draw = learning_curves(table1.by_length, table1.group_title)

"""Figure 5: learning to translate, by pair of scores.

Britz, Guan and Luong (2017): learning curves of rows of Table 2.
"""

import statistics

from experiments.reproduction.claims import Claim, Verdict, made_by, span
from experiments.reproduction.pages import learning_curves, sources
from experiments.reproduction.results import Result, Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table2
from experiments.studies._curves import OF_CURVES, PAIRS_IN_ORDER, by_scores, scores_of

RUNS_OF = "table2"
ROWS: dict[Scale, str] = {
    "full": "wmt17_en_fi_k64",
    "small": "multi30k_en_de_k32",
    "tiny": "multi30k_en_de_k32",
}
INTRODUCTION = f"""
Which pair of scores, named encoder / decoder, learns to translate best? In the paper's Figure 5
(English-Finnish, K = 64), two softmaxes do consistently badly and the other three pairs do about
equally well. Here: a row of Table 2 with each pair. The encoder's softmax is over the source unless
its name has "over slots", as equation 5 is printed. {OF_CURVES} Bands show the range of two seeds.
"""


def rows(scale: Scale) -> list[Row]:
    """A row of Table 2 with each pair of scores and each softmax axis, some with a second seed."""
    (row,) = (row for row in table2.rows(scale) if row.name == ROWS[scale])
    printed = [table2.with_printed_softmax(row, score) for score in ("softmax", "sigmoid")]
    found = [row, *table2.with_other_pairs(row), *printed]
    second = {f"{one.name}_seed1" for one in found}
    return [*found, *(one for one in table2.rows(scale) if one.name in second)]


def claims(found: Results) -> list[Claim]:
    """Two softmaxes are worst: with the softmax over the source, and with equation 5 as printed."""
    return [
        _two_softmaxes(found, "softmax", "over the source"),
        _two_softmaxes(found, "softmax over slots", "eq. 5 as printed"),
    ]


def _two_softmaxes(found: Results, encoder: str, reading: str) -> Claim:
    """Reproduced if two softmaxes are behind all other pairs by more than the spread of seeds.

    Partly reproduced if they are so far behind the best pair only, otherwise contradicted.
    """
    what, paper = f"two softmaxes translate worst, {reading}", "consistently badly"
    rows: dict[str, list[Result]] = {}
    for result in found:
        rows.setdefault(scores_of(result), []).append(result)
    scores = {pair: [one["bleu"] for one in members] for pair, members in rows.items()}
    worst = f"{encoder} / softmax"
    pairs = (f"{encoder} / sigmoid", "sigmoid / softmax", "sigmoid / sigmoid")
    others = [statistics.mean(scores[pair]) for pair in pairs if pair in scores]
    if worst not in scores or not others:
        return Claim(what, paper)
    ours = statistics.mean(scores[worst])
    seeds = max(max(each) - min(each) for each in scores.values())
    verdict: Verdict = "contradicted"
    if ours < max(others) - seeds:
        verdict = "reproduced" if ours < min(others) - seeds else "partly"
    return Claim(
        what, paper, f"{ours:.1f}; others {span(others, '.1f')}", verdict, made_by(rows[worst])
    )


tables = sources
draw = learning_curves(by_scores(table2.by_pair), table2.group_title, PAIRS_IN_ORDER)

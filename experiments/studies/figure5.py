"""Figure 5: learning to translate, by pair of scores.

Britz, Guan and Luong (2017): learning curves of rows of Table 2.
"""

import statistics
from collections.abc import Mapping, Sequence

from experiments.reproduction.claims import (
    IF_LONG,
    MARGIN,
    Claim,
    Verdict,
    from_cases,
    if_long,
    made_by,
    span,
)
from experiments.reproduction.pages import learning_curves, sources, table_label
from experiments.reproduction.results import Result, Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table2
from experiments.studies._curves import OF_CURVES, PAIRS_IN_ORDER, by_scores, scores_of
from experiments.studies._translation_claims import PAPER_UPDATES

RUNS_OF = "table2"
ROWS: dict[Scale, str] = {
    "full": "wmt17_en_fi_k64",
    "small": "multi30k_en_de_k32",
    "tiny": "multi30k_en_de_k32",
}
READINGS = (("softmax over source", "source"), ("softmax over slots", "slots"))
INTRODUCTION = f"""
Which pair of scores, named encoder / decoder, learns to translate best? In the paper's Figure 5
(English-Finnish, K = 64), two softmaxes do consistently badly and the other three pairs do about
equally well. Here: a row of Table 2 with each pair. The encoder's softmax is over the source unless
its name has "over slots", as equation 5 is printed. At small scale, K is 32, and three pairs are
shown for K = 64, too; verdicts are about K = 32. {OF_CURVES} Bands show the range of two seeds.
"""


def rows(scale: Scale) -> list[Row]:
    """A row of Table 2 with each pair of scores and each softmax axis, some with a second seed."""
    (row,) = (row for row in table2.rows(scale) if row.name == ROWS[scale])
    printed = [table2.with_printed_softmax(row, score) for score in ("softmax", "sigmoid")]
    found = [row, *table2.with_other_pairs(row), *printed]
    more = {f"{one.name}_seed1" for one in found}
    if scale != "full":
        more |= {f"multi30k_en_de_k64{pair}" for pair in ("", "_slots_softmax", "_slots_sigmoid")}
    return [*found, *(one for one in table2.rows(scale) if one.name in more)]


def claims(found: Results) -> list[Claim]:
    """Two softmaxes are worst, and the other pairs about equally good; judged by one K."""
    found = [result for result in found if _attention(result) == _attention(found[0])]
    scores: dict[str, list[float]] = {}
    for result in found:
        scores.setdefault(scores_of(result), []).append(result["bleu"])
    means = {pair: statistics.mean(members) for pair, members in scores.items()}
    return [_two_softmaxes(means, found), _other_pairs(means, found)]


def _attention(result: Result) -> str:
    return str(result["configuration"]["model"]["attention"])


def _others(encoder: str, means: Mapping[str, float]) -> list[float]:
    """BLEU of the pairs besides two softmaxes that exist, for one reading of equation 5."""
    pairs = (f"{encoder} / sigmoid", "sigmoid / softmax", "sigmoid / sigmoid")
    return [means[pair] for pair in pairs if pair in means]


def _other_pairs(means: Mapping[str, float], found: Results) -> Claim:
    claim = Claim(
        "the other pairs are equally good",
        "a minor difference",
        "For each reading of equation 5 that has all three pairs: reproduced if their mean "
        f"validation BLEU differs by at most {MARGIN:g}; otherwise not; undecided if the readings "
        f"disagree. {IF_LONG}",
    )
    ranges = {reading: _others(encoder, means) for encoder, reading in READINGS}
    complete = {reading: bleu for reading, bleu in ranges.items() if len(bleu) == 3}
    if not complete:
        return claim.incomplete(max(map(len, ranges.values())), 3)
    verdicts = [from_cases([max(bleu) - min(bleu) <= MARGIN]) for bleu in complete.values()]
    here = "; ".join(f"{reading} {span(bleu, '.1f')}" for reading, bleu in complete.items())
    return claim.judged(here, _agreed(verdicts, found), made_by(found))


def _two_softmaxes(means: Mapping[str, float], found: Results) -> Claim:
    """Judged by the readings of equation 5 that have all pairs."""
    claim = Claim(
        "two softmaxes are worst",
        "badly",
        "The range of the other pairs is in brackets. For each reading of equation 5 that has all "
        "four pairs: reproduced if two softmaxes are "
        f"more than {MARGIN:g} validation BLEU below every other pair; contradicted if they are as "
        f"far above some pair; otherwise undecided, also if the readings disagree. {IF_LONG}",
    )
    said, verdicts = [], []
    for encoder, reading in READINGS:
        worst = f"{encoder} / softmax"
        others = _others(encoder, means)
        if worst not in means:
            continue
        if missing := 3 - len(others):
            said.append(f"{reading} {means[worst]:.1f}, {missing} missing")
        else:
            said.append(f"{reading} {means[worst]:.1f} ({span(others, '.1f')})")
            verdicts.append(_worst(means[worst], others))
    if not verdicts:
        return claim.incomplete(min(len(means), 3), 4)
    return claim.judged("; ".join(said), _agreed(verdicts, found), made_by(found))


def _agreed(verdicts: Sequence[Verdict], found: Results) -> Verdict:
    """The verdict of all readings, or "undecided" if they disagree or training was short."""
    verdict = verdicts[0] if len(set(verdicts)) == 1 else "undecided"
    return if_long(verdict, found, PAPER_UPDATES)


def _worst(ours: float, others: Sequence[float]) -> Verdict:
    """The verdict on one reading."""
    if ours < min(others) - MARGIN:
        return "reproduced"
    return "contradicted" if ours > min(others) + MARGIN else "undecided"


def tables(found: Results) -> str:
    """The rows, named after K and their pairs of scores as in the figures."""
    return sources(
        [
            {**result, "label": f"{table_label(_attention(result))}, {scores_of(result)}"}
            for result in found
        ]
    )


draw = learning_curves(by_scores(table2.by_pair), table2.group_title, PAIRS_IN_ORDER)

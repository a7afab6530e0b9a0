"""Figure 4: learning to translate, by model.

Britz, Guan and Luong (2017): learning curves of rows of Table 2.
"""

import statistics

from experiments.reproduction.claims import (
    IF_LONG,
    MARGIN,
    Claim,
    from_cases,
    if_long,
    made_by,
    several,
)
from experiments.reproduction.pages import learning_curves, sources
from experiments.reproduction.results import Result, Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table2
from experiments.studies._curves import OF_CURVES, scores_of
from experiments.studies._translation_claims import PAPER, PAPER_UPDATES

RUNS_OF = "table2"
FULL = [
    f"wmt17_{pair}_{name}"
    for pair in ("en_fi", "en_tr")
    for name in ("k32_pe", "k64_pe", "bahdanau")
]
SMALL = [
    *(f"multi30k_en_de_{name}" for name in table2.MULTI30K_ROWS),
    *(f"multi30k_en_de_{name}_seed1" for name in table2.SEEDED),
    "multi30k_en_de_k64_pe_sigmoid_softmax",
]
INTRODUCTION = f"""
Does K-memory learn to translate as well and as soon as attention? The paper's Figure 4 has learning
curves for English-Finnish and English-Turkish. Its K-memory has position encodings, a sigmoid while
encoding and a softmax while decoding. With enough slots, it is on a par with attention, and
English-Turkish converges very quickly. Here: rows of Table 2. Those of Multi30k have two softmaxes
unless they name others, and position encodings only if marked PE. {OF_CURVES} Bands show the range
of two seeds.
"""


def rows(scale: Scale) -> list[Row]:
    """At full scale the rows of the paper's figure, otherwise those of Multi30k."""
    wanted = FULL if scale == "full" else SMALL
    return [row for row in table2.rows(scale) if row.name in wanted]


def claims(found: Results) -> list[Claim]:
    """With enough slots, K-memory with the figure's scores is on a par with attention."""
    pairs = ("en_fi", "en_tr")
    gaps = [PAPER[pair]["k64_pe"][0] - PAPER[pair]["bahdanau"][0] for pair in pairs]
    claim = Claim(
        "K = 64 + PE, sigmoid / softmax, is on a par with Att",
        f"{gaps[0]:+.2f} en-fi, {gaps[1]:+.2f} en-tr",
        "Reproduced if, on every corpus, the best validation BLEU of K = 64 + PE is at most "
        f"{MARGIN:g} below Att's; partly if this holds on some corpora; otherwise not. {IF_LONG} "
        "The paper's figures are of the best of four pairs of scores, which it does not name.",
    )
    gains, rows = [], []
    for corpus in table2.by_pair(found).values():
        ours, att = ([row for row in corpus if is_one(row)] for is_one in (_is_wide, _is_attention))
        if ours and att:
            rows += [*ours, *att]
            means = [statistics.mean(row["bleu"] for row in one) for one in (ours, att)]
            gains.append(means[0] - means[1])
    if not gains:
        there = any(map(_is_wide, found)) or any(map(_is_attention, found))
        return [claim.incomplete(int(there), 2)]
    verdict = from_cases([gain >= -MARGIN for gain in gains])
    verdict = if_long(verdict, rows, PAPER_UPDATES)
    return [claim.judged(several(gains, "+.2f"), verdict, made_by(rows))]


def _is_wide(result: Result) -> bool:
    """Whether a row is K = 64 as in the paper's figure."""
    model = result["configuration"]["model"]
    is_encoded = model["position_encoding"] != "none"
    return is_encoded and (model["attention"], scores_of(result)) == (
        "k_memory:64",
        "sigmoid / softmax",
    )


def _is_attention(result: Result) -> bool:
    return bool(result["configuration"]["model"]["attention"] == "bahdanau")


tables = sources
draw = learning_curves(table2.curves, table2.group_title)

"""What the memory paper leaves open.

Each reading is trained, and the results decide the defaults. Source: equations 4 to 10 and section
4.1.1 of Britz, Guan and Luong (2017). The paper leaves four points open: the pair of scoring
functions behind Table 1, the axis of the softmax in equation 5, the meaning of "renormalised" for
position encodings, and the decoder's first state.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from experiments.reproduction.claims import (
    IF_LONG,
    MARGIN,
    Claim,
    Verdict,
    if_long,
    made_by,
)
from experiments.reproduction.pages import learning_curves, markdown_table, prose, trained_at
from experiments.reproduction.results import Result, Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table1
from experiments.studies._copy_claims import PAPER_UPDATES
from experiments.studies._curves import PAIRS_IN_ORDER, pair_of_scores, scores_of, updates_to

HEADER = (
    *("L", "reading", "best BLEU", "exact lines", "updates to 90", "updates to 99"),
    "loss at 1,000",
)
# Encoder score, axis of equation 5, decoder score. A sigmoid has no axis.
PAIRS = (
    ("softmax", "slots", "softmax"),
    ("softmax", "slots", "sigmoid"),
    ("softmax", "time", "softmax"),
    ("softmax", "time", "sigmoid"),
    ("sigmoid", "slots", "softmax"),
    ("sigmoid", "slots", "sigmoid"),
)
SLOTS = (32, 4)
ENCODINGS = ("masked", "sum_to_one", "mean_one")
# Readings that are also trained with position encodings: the paper's pair, and the default.
WITH_ENCODINGS = ("k32_sigmoid_softmax", "k32_softmax_time_softmax", "k4_sigmoid_softmax")
WITH_BRIDGE = ("k32_softmax_slots_softmax", "k4_softmax_time_softmax")  # best for each K, L = 20
# The best two readings at L = 20, over both K, are also trained on longer sequences.
BEST = ("k32_softmax_time_softmax", "k32_softmax_slots_softmax")
# By L. A reading that has not converged within this budget is worse than those that have.
BUDGETS = {20: {"num_updates": 2000}, 50: {"num_updates": 2500}}


def introduction(scale: Scale) -> str:
    """The text of the page before its table."""
    text = (
        "Where the paper leaves a choice open, which reading learns to copy best? The copy task is "
        "that of Table 1 at the same scale, with one seed for each reading"
    )
    if scale != "small":
        return f"{text}."
    limits = ", ".join(
        f"at most {budget['num_updates']:,} updates for L = {length}"
        for length, budget in BUDGETS.items()
    )
    return f"{text}; {limits}."


def rows(scale: Scale) -> list[Row]:
    """One row per reading."""
    return [_row(reading, scale) for reading in readings()]


class Reading(NamedTuple):
    """One reading of the paper, from which a row is made.

    Fields:
        name: name of the run and the result.
        label: name in tables and figures.
        slots: int. K.
        options: the options that the reading sets.
        max_length: int. L of the copy task.
    """

    name: str
    label: str
    slots: int
    options: dict[str, Any]
    max_length: int = 20


def readings() -> list[Reading]:
    """All readings, the most informative first; then the best ones on longer sequences."""
    found = []
    for slots in SLOTS:
        for encoder, axis, decoder in PAIRS:
            options = {"encoder_score": encoder, "normalise_over": axis, "decoder_score": decoder}
            over = f"_{axis}" if encoder == "softmax" else ""
            label = pair_of_scores(encoder, axis, decoder)
            found.append(Reading(f"k{slots}_{encoder}{over}_{decoder}", label, slots, options))
    known = {reading.name: reading for reading in found}

    def variant(base: str, name: str, label: str, options: dict[str, Any]) -> Reading:
        reading = known[base]
        return reading._replace(
            name=f"{base}_{name}",
            label=f"{reading.label}, {label}",
            options={**reading.options, **options},
        )

    for base in WITH_ENCODINGS:
        for encoding in ENCODINGS:
            label = f"positions {encoding.replace('_', ' ')}"
            options = {"position_encoding": encoding}
            found.append(variant(base, f"pe_{encoding}", label, options))
    for base in WITH_BRIDGE:
        found.append(variant(base, "dense_bridge", "dense bridge", {"bridge": "dense"}))
    longer = [
        reading._replace(name=f"{reading.name}_l50", max_length=50)
        for reading in found
        if reading.name in BEST
    ]
    return [*found, *longer]


def _row(reading: Reading, scale: Scale) -> Row:
    row = table1.row(reading.max_length, f"k{reading.slots}", scale)
    budget = BUDGETS[reading.max_length] if scale == "small" else {}
    return dataclasses.replace(
        row,
        name=reading.name,
        options={**row.options, **budget, **reading.options},
        label=f"K={reading.slots}, {reading.label}",
        curve=reading.label,
        paper={},
    )


def claims(found: Results) -> list[Claim]:
    """Position encodings make no difference to copying."""
    claim = Claim(
        "PE does not change copies",
        "almost identical",
        "Models with encodings are compared with those without. The largest difference is shown "
        f'for each reading of "renormalised". Partly reproduced if it is at most {MARGIN:g} BLEU '
        "with a mean of one, because L = 20 says little (a model without attention copies there, "
        f"too); otherwise not. {IF_LONG}",
    )
    by_name = {result["name"]: result for result in found}
    encoded = [f"{base}_pe_{kind}" for base in WITH_ENCODINGS for kind in ENCODINGS]
    needed = [*WITH_ENCODINGS, *encoded]
    rows = [by_name[name] for name in needed if name in by_name]
    if len(rows) < len(needed):
        return [claim.incomplete(len(rows), len(needed))]
    bleu = {row["name"]: row["bleu"] for row in rows}
    largest = {
        kind: max((bleu[f"{base}_pe_{kind}"] - bleu[base] for base in WITH_ENCODINGS), key=abs)
        for kind in ENCODINGS
    }
    here = ", ".join(f"{kind.replace('_', ' ')} {gain:+.2f}" for kind, gain in largest.items())
    verdict: Verdict = "partly" if abs(largest["mean_one"]) <= MARGIN else "not"
    return [claim.judged(here, if_long(verdict, rows, PAPER_UPDATES), made_by(rows))]


def curves(found: Results) -> dict[str, list[Result]]:
    """Groups by length and slots: the pairs of scores, then each pair with its variants."""
    bases = {_base(result["name"]) for result in found if _base(result["name"]) != result["name"]}
    groups: dict[str, list[Result]] = {}
    for result in found:
        name, base, curve = result["name"], _base(result["name"]), scores_of(result)
        slots, _, pair = base.removesuffix("_l50").partition("_")
        if name == base:
            kinds = ["pairs", *([pair] if name in bases else [])]
        else:
            kinds = [pair]
            curve = f"{curve}, {result['label'].rpartition(', ')[2]}"
        for kind in kinds:
            group = groups.setdefault(f"l{result['length']}_{slots}_{kind}", [])
            group.append({**result, "curve_name": curve})
    return groups


def _base(name: str) -> str:
    """The row from which a variant is derived; for other rows, the row itself."""
    return name.partition("_pe_")[0].removesuffix("_dense_bridge")


def group_title(group: str) -> str:
    """The title of a figure: the task, K, and the difference between its curves."""
    length, slots, kind = group.split("_", 2)
    task = table1.group_title(f"{length}_{slots}")
    if kind == "pairs":
        return f"{task}: pairs of scores"
    encoder, *axis, decoder = kind.split("_")
    return f"{task}: variants of {pair_of_scores(encoder, (axis or ['time'])[0], decoder)}"


draw = learning_curves(curves, group_title, PAIRS_IN_ORDER)


def tables(found: Results) -> str:
    """A table of how well and how soon each reading learns."""
    lines = [
        [
            str(result["length"]),
            result["label"],
            f"{result['bleu']:.2f}",
            f"{100 * result['evaluation']['exact']:.1f} %",
            *(_shown(updates_to(result["curve"], bleu)) for bleu in (90.0, 99.0)),
            _loss_at(result["curve"], 1000),
        ]
        for result in found
    ]
    return f"{markdown_table(HEADER, lines)}\n\n{prose(trained_at(found))}\n"


def _shown(update: int | None) -> str:
    return "-" if update is None else f"{update:,}"


def _loss_at(curve: Sequence[dict[str, Any]], update: int) -> str:
    losses = [p["loss"] for p in curve if p["kind"] == "train" and p["update"] <= update]
    return f"{losses[-1]:.3f}" if losses and losses[-1] is not None else "-"

"""What the memory paper leaves open.

Each reading is trained; the defaults are chosen by it. REFERENCE: equations 4 to 10 and section
4.1.1 of Britz, Guan and Luong (2017). Open are the pair of scoring functions behind Table 1, the
axis of the softmax in equation 5, what "renormalised" means for position encodings, and the
decoder's first state.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from experiments.reproduction.pages import learning_curves, markdown_table
from experiments.reproduction.results import Result, Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table1
from experiments.studies._curves import PAIRS_IN_ORDER, scores_of, updates_to

HEADER = (
    *("L", "reading", "best BLEU", "exact lines", "updates to 90", "updates to 99"),
    "loss at 1,000",
)
# encoder score, axis of eq. 5, decoder score; a sigmoid has no axis
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
# Position encodings with the paper's pair for them, and with the default.
WITH_ENCODINGS = ("k32_sigmoid_softmax", "k32_softmax_time_softmax", "k4_sigmoid_softmax")
WITH_BRIDGE = ("k32_softmax_slots_softmax", "k4_softmax_time_softmax")  # each K's best at L = 20
# What is trained on longer sequences too: the best two at L = 20, over both K.
BEST = ("k32_softmax_time_softmax", "k32_softmax_slots_softmax")
# By L: a reading that has not converged by then is behind those that have.
BUDGETS = {20: {"num_updates": 2000}, 50: {"num_updates": 2500}}


def introduction(scale: Scale) -> str:
    """What the page says before its table."""
    text = (
        "Which reading of the paper learns to copy best, where the paper leaves it open? The copy "
        "task as in Table 1 at the same scale, one seed each"
    )
    if scale != "small":
        return f"{text}."
    limits = ", ".join(
        f"{budget['num_updates']:,} updates at most for L = {length}"
        for length, budget in BUDGETS.items()
    )
    return f"{text}; {limits}."


def rows(scale: Scale) -> list[Row]:
    """One row per reading."""
    return [_row(reading, scale) for reading in readings()]


class Reading(NamedTuple):
    """One reading of the paper, as a row.

    Fields:
        name: of its run and result.
        label: what tables and figures call it.
        slots: int. K.
        options: what it sets.
        max_length: int. L of the copy task.
    """

    name: str
    label: str
    slots: int
    options: dict[str, Any]
    max_length: int = 20


def readings() -> list[Reading]:
    """Every reading, the most telling first; then the best of them on longer sequences."""
    found = []
    for slots in SLOTS:
        for encoder, axis, decoder in PAIRS:
            options = {"encoder_score": encoder, "normalise_over": axis, "decoder_score": decoder}
            over = f"_{axis}" if encoder == "softmax" else ""
            label = f"{encoder}{over.replace('_', ' over ')} / {decoder}"
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


def curves(found: Results) -> dict[str, list[Result]]:
    """By length and slots: the pairs of scores, then each pair with what was tried beside it."""
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
    """The row of which a row is a variant, or itself."""
    return name.partition("_pe_")[0].removesuffix("_dense_bridge")


def group_title(group: str) -> str:
    """The title of a figure: its task, K, and what differs between its curves."""
    length, slots, kind = group.split("_", 2)
    task = table1.group_title(f"{length}_{slots}")
    if kind == "pairs":
        return f"{task}: pairs of scores"
    encoder, *axis, decoder = kind.split("_")
    over = " over slots" if "slots" in axis else ""
    return f"{task}: variants of {encoder}{over} / {decoder}"


draw = learning_curves(curves, group_title, PAIRS_IN_ORDER)


def tables(found: Results) -> dict[str, str]:
    """The readings in order, how well and how soon they learn, by suffix of file."""
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
    return {".md": markdown_table(HEADER, lines) + "\n"}


def _shown(update: int | None) -> str:
    return "-" if update is None else f"{update:,}"


def _loss_at(curve: Sequence[dict[str, Any]], update: int) -> str:
    losses = [p["loss"] for p in curve if p["kind"] == "train" and p["update"] <= update]
    return f"{losses[-1]:.3f}" if losses and losses[-1] is not None else "-"

"""One slot against no attention.

In the paper's Table 1, K = 1 is ahead of no attention; in ours, it is behind. Why? With equation 5
as printed, the only slot is the sum of all encoder states. By default, it is their average with
learned weights. The study trains both, and no attention, for longer than the rows of Table 1.
"""

import dataclasses
from typing import Any

from experiments.reproduction.claims import Claim
from experiments.reproduction.pages import learning_curves, markdown_table, prose, trained_at
from experiments.reproduction.results import Result, Results
from experiments.reproduction.rows import Row, Scale
from experiments.studies import table1
from experiments.studies._copy_claims import AHEAD_RULE, PAPER, judge_ahead

LENGTH = 50  # L, in symbols
# Training never stops early: BLEU is at most 100. The learning rate falls after four validations
# without a better BLEU, not after one: when a model has barely begun to learn, one bad validation
# says little.
SMALL: dict[str, Any] = {
    "num_updates": 9000,
    "decay_patience": 4,
    "patience": 0,
    "stop_at_bleu": 101.0,
}
MODELS: dict[str, tuple[str, str, str, dict[str, Any]]] = {  # attention, label, curve, options
    "none": ("none", "No Att", "none", {}),
    "k1": ("k1", "K=1, softmax over the source", "k_memory:1", {"normalise_over": "time"}),
    "k1_slots": (
        *("k1", "K=1, softmax over slots", "k_memory:1, softmax over slots"),
        {"normalise_over": "slots"},
    ),
}
HEADER = (
    *("model", "BLEU", "exact lines", "updates", "last learning rate"),
    "BLEU of Table 1, paper, 200,000 updates",
)


def introduction(scale: Scale) -> str:
    """The text of the page before its table."""
    text = (
        f"Is one slot better than no attention? The task is the copy task with L = {LENGTH}, as in "
        "Table 1 at the same scale, with one seed per row. In the paper, K = 1 is ahead. Equation "
        "5 as printed makes the only slot the sum of all encoder states. A softmax over the source "
        "makes it a learned average."
    )
    if scale != "small":
        return text
    return (
        f"{text} Every row trains for {SMALL['num_updates']:,} updates. The paper's rows took "
        "200,000, so these rows show whether the order changes with longer training and with the "
        "axis, but neither confirm nor refute the finding. The learning rate is "
        f"halved after {SMALL['decay_patience']} validations that are no better than the best."
    )


def rows(scale: Scale) -> list[Row]:
    """The rows: no attention, and one slot with each axis of the softmax."""
    return [_row(name, scale) for name in MODELS]


def _row(name: str, scale: Scale) -> Row:
    attention, label, curve, options = MODELS[name]
    row = table1.row(LENGTH, attention, scale)
    longer = SMALL if scale == "small" else {}
    return dataclasses.replace(
        row,
        name=f"copy_{LENGTH}_{name}",
        options={**row.options, **longer, **options},
        label=label,
        curve=curve,
    )


def claims(found: Results) -> list[Claim]:
    """K = 1 is ahead of no attention, with each reading of equation 5."""
    gain = f"{PAPER[LENGTH]['k1'][0] - PAPER[LENGTH]['none'][0]:+.1f}"
    by_name = {result["name"].removeprefix(f"copy_{LENGTH}_"): result for result in found}
    readings = {"k1": "softmax over the source", "k1_slots": "eq. 5 as printed"}
    return [
        judge_ahead(
            Claim(f"K = 1 is ahead of no attention, L = {LENGTH}, {reading}", gain, AHEAD_RULE),
            [(by_name.get(name), by_name.get("none"))],
        )
        for name, reading in readings.items()
    ]


def tables(found: Results) -> str:
    """The models' scores."""
    lines = [
        [
            result["label"],
            f"{result['bleu']:.2f}",
            f"{100 * result['evaluation']['exact']:.1f} %",
            f"{result['training']['best_update']:,}",
            f"{_last_learning_rate(result):g}",
            f"{result['paper']['bleu']:.2f}",
        ]
        for result in found
    ]
    return f"{markdown_table(HEADER, lines)}\n\n{prose(trained_at(found))}\n"


def _last_learning_rate(result: Result) -> float:
    rates: list[float] = [one["learning_rate"] for one in result["curve"] if one["kind"] == "train"]
    return rates[-1]


draw = learning_curves(table1.by_length, table1.group_title)

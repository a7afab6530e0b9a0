"""The common part of the learning curves, Figures 3 to 5 of Britz et al. (2017)."""

from collections.abc import Sequence
from typing import Any

from experiments.reproduction.pages import Groups, short_name
from experiments.reproduction.results import Result, Results

OF_CURVES = "BLEU of the validation set during training, by beam search."
# This order gives each pair the same colour in all figures.
PAIRS_IN_ORDER = tuple(
    f"{encoder} / {decoder}"
    for encoder in ("softmax", "sigmoid", "softmax over slots")
    for decoder in ("softmax", "sigmoid")
)


def by_scores(groups: Groups) -> Groups:
    """Splits groups by K, and names each curve after its pair of scores."""

    def renamed(results: Results) -> dict[str, list[Result]]:
        found: dict[str, list[Result]] = {}
        for name, members in groups(results).items():
            for result in members:
                attention = result["configuration"]["model"]["attention"]
                group = f"{name}_{short_name(attention)}"
                found.setdefault(group, []).append({**result, "curve_name": scores_of(result)})
        return found

    return renamed


def scores_of(result: Result) -> str:
    """The pair of scores of a model; an encoder softmax over slots is named as such."""
    model = result["configuration"]["model"]
    encoder = model["encoder_score"]
    if encoder == "softmax" and model["normalise_over"] == "slots":
        encoder = "softmax over slots"
    return f"{encoder} / {model['decoder_score']}"


def updates_to(curve: Sequence[dict[str, Any]], bleu: float) -> int | None:
    """The update of the first validation with at least this BLEU; None if there is none."""
    reached = (p["update"] for p in curve if p["kind"] == "valid" and p["bleu"] >= bleu)
    return next(reached, None)

"""The common part of the learning curves, Figures 3 to 5 of Britz et al. (2017)."""

from collections.abc import Sequence
from typing import Any

from experiments.reproduction.pages import Groups, short_name
from experiments.reproduction.results import Result, Results

OF_CURVES = (
    "Curves show validation BLEU during training, by beam search. google/seq2seq computes it under "
    "teacher forcing during training; the paper does not say which its figures show."
)
# This order gives each pair the same colour in all figures.
PAIRS_IN_ORDER = tuple(
    f"{encoder} / {decoder}"
    for encoder in ("softmax over source", "sigmoid", "softmax over slots")
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
    """The pair of scores of a model."""
    model = result["configuration"]["model"]
    return pair_of_scores(model["encoder_score"], model["normalise_over"], model["decoder_score"])


def pair_of_scores(encoder: str, axis: str, decoder: str) -> str:
    """The name of a pair of scores, encoder / decoder; an encoder softmax is named with its axis.

    Args:
        encoder, decoder: "softmax" or "sigmoid".
        axis: the axis of the encoder's softmax (equation 5), "time" or "slots".
    """
    over = {"time": " over source", "slots": " over slots"}[axis] if encoder == "softmax" else ""
    return f"{encoder}{over} / {decoder}"


def updates_to(curve: Sequence[dict[str, Any]], bleu: float) -> int | None:
    """The update of the first validation with at least this BLEU; None if there is none."""
    reached = (p["update"] for p in curve if p["kind"] == "valid" and p["bleu"] >= bleu)
    return next(reached, None)

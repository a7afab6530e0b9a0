"""Figures of training curves."""

import math
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from seq2seq_memattn.plots.style import (
    NOTE_COLOUR,
    Rows,
    add_legend,
    add_note,
    line_of,
    looks,
    new_figure,
    require_filled,
    round_ticks,
    styled,
)

Progress = Literal["updates", "minutes"]

MAX_MARKERS = 15  # on one curve, to identify it; further points have no markers


@styled
def learning_curves(
    curves: Mapping[str, Rows],
    against: Progress = "updates",
    title: str = "",
    order: Sequence[str] = (),
    measure: str = "validation BLEU",
) -> Figure:
    """Draws validation BLEU during training, as in figures 3 to 5 of Britz et al. (2017).

    The BLEU axis goes from 0 to 100 if a model exceeds 50, as on the copy task. Otherwise it covers
    only the range of the values, so that small differences can be seen. If several runs of a model
    have records of the same update, the curve is their mean, in a band from the lowest to the
    highest. Against minutes, it ends with the run that ended first: the mean of the others' minutes
    could be smaller.

    Args:
        curves: for each model, records with `update`, `seconds` of training and `bleu` (0 to 100).
            Records without `bleu` are left out, so all lines of a metrics.jsonl can be given.
        against: "updates" or "minutes" of training.
        title: title of the figure.
        order: see `looks`.
        measure: name of the measure in `bleu`, for the label of the axis.

    Raises:
        ValueError: if there is no model, a model has no BLEU, or `against` is unknown.
    """
    figure, axes = _curves(curves, "bleu", against, title, order)
    axes.set_ylabel(f"{measure} (0 to 100)")
    lowest, highest = axes.dataLim.intervaly
    margin = 0.05 * max(highest - lowest, 1.0)
    axes.set_ylim(*((-2.0, 102.0) if highest > 50.0 else (lowest - margin, highest + margin)))
    return figure


@styled
def loss_curves(
    curves: Mapping[str, Rows], against: Progress = "updates", title: str = ""
) -> Figure:
    """Draws the loss during training on a logarithmic axis.

    Args:
        curves: as in `learning_curves`, with `loss` in nats per target token in place of `bleu`.
            The losses of validations are left out.
        against: "updates" or "minutes" of training.
        title: title of the figure.

    Raises:
        ValueError: if there is no model, a model has no loss, or `against` is unknown.
    """
    training = {
        model: [row for row in rows if row.get("kind") != "valid"] for model, rows in curves.items()
    }
    figure, axes = _curves(training, "loss", against, title)
    axes.set_ylabel("loss (nats per target token)")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    low, high = axes.get_ylim()
    has_two = math.floor(math.log10(high)) > math.ceil(math.log10(low))  # labelled powers of ten
    axes.yaxis.set_minor_formatter(NullFormatter() if has_two else StrMethodFormatter("{x:.3g}"))
    if not has_two and high > 10.0 * low:  # a label at every minor tick would be too many
        axes.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    return figure


@styled
def slot_use_curves(
    curves: Mapping[str, Rows], num_slots: int, title: str = "", order: Sequence[str] = ()
) -> Figure:
    """Draws how many slots of K-memory are in use during training, and how many are dead.

    Args:
        curves: for each model, records with `update`, `slots_corpus`, the perplexity of the mean
            use of the slots (1 if only one is read, `num_slots` if all are read alike), and
            `slots_dead`, the number of slots that are hardly read. Records without them are left
            out.
        num_slots: int. K, drawn as a dashed line, "all slots".
        title: title of the figure.
        order: see `looks`.

    Raises:
        ValueError: if there is no model, or a model has no such records.
    """
    figure = new_figure(3.6, title)
    used, dead = figure.subplots(1, 2)
    _draw(used, curves, "slots_corpus", "updates", order)
    used.set_ylabel("slots in use (perplexity)")
    used.axhline(num_slots, color=NOTE_COLOUR, linestyle="--", linewidth=1.0)
    used.annotate("all slots", (0.02, 1.01 * num_slots), xycoords=("axes fraction", "data"))
    _draw(dead, curves, "slots_dead", "updates", order)
    dead.set_ylabel("dead slots")
    for axes in (used, dead):
        axes.set_ylim(0.0, 1.1 * num_slots)
        axes.xaxis.set_major_locator(round_ticks(is_integer=True, most=4))
    add_legend(figure, used)
    return figure


def _curves(
    curves: Mapping[str, Rows],
    measure: str,
    against: Progress,
    title: str,
    order: Sequence[str] = (),
) -> tuple[Figure, Axes]:
    figure = new_figure(3.6, title)
    axes = figure.subplots()
    _draw(axes, curves, measure, against, order)
    add_legend(figure, axes)
    return figure, axes


def _draw(
    axes: Axes, curves: Mapping[str, Rows], measure: str, against: Progress, order: Sequence[str]
) -> None:
    if against not in ("updates", "minutes"):
        raise ValueError(f"`against`: expected 'updates' or 'minutes'; got {against!r}")
    require_filled(curves, "curves", "a model")
    has_band = False
    for model, look in looks(curves, order).items():
        rows = [row for row in curves[model] if row.get(measure) is not None]
        require_filled(rows, f"curves[{model!r}]", f"a record with {measure!r}")
        runs: dict[int, list[Mapping[str, Any]]] = {}
        for row in sorted(rows, key=lambda row: row["update"]):
            runs.setdefault(row["update"], []).append(row)
        if against == "minutes":
            most_runs = max(map(len, runs.values()))
            runs = {update: one for update, one in runs.items() if len(one) == most_runs}
        values = [[row[measure] for row in one] for one in runs.values()]
        seconds = (mean(row["seconds"] for row in one) for one in runs.values())
        at = list(runs) if against == "updates" else [one / 60.0 for one in seconds]
        every = -(-len(at) // MAX_MARKERS)
        axes.plot(at, list(map(mean, values)), **line_of(look), markevery=every)
        if any(len(one) > 1 for one in values):
            has_band = True
            least, most = list(map(min, values)), list(map(max, values))
            axes.fill_between(at, least, most, color=look.colour, alpha=0.2, linewidth=0.0)
    axes.set_xlim(left=0.0)
    axes.xaxis.set_major_locator(round_ticks(is_integer=against == "updates"))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.set_xlabel("updates" if against == "updates" else "training time (minutes)")
    if has_band:
        add_note(axes, "bands: lowest to highest seed")

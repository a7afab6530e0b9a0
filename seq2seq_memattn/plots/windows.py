"""A figure of BLEU by the average window: the number of encoder states scored per step."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from seq2seq_memattn.plots.style import (
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

NAME_SIZE = 0.05  # the size of a threshold's label, as a share of either axis


@styled
def bleu_by_window(points: Mapping[str, Rows], title: str = "") -> Figure:
    """Draws BLEU against the average window, as in figure 3 of Shu and Nakayama (2017).

    Args:
        points: for each data set, records with `window` (encoder states per step), `bleu` (0 to
            100) and `threshold` (None: no threshold), in the order in which a line joins them. A
            record whose `is_chosen` is true is circled.
        title: title of the figure.

    Raises:
        ValueError: if there is no data set, or one has no point.
    """
    require_filled(points, "points", "a data set")
    figure = new_figure(3.6, title)
    axes = figure.subplots()
    for name, look in looks(points).items():
        require_filled(points[name], f"points[{name!r}]", "a point")
        windows = [point["window"] for point in points[name]]
        scores = [point["bleu"] for point in points[name]]
        axes.plot(windows, scores, **line_of(look))
        for point in points[name]:
            if point.get("is_chosen"):
                place = point["window"], point["bleu"]
                axes.plot(*place, "o", color=look.colour, markersize=11.0, markerfacecolor="none")
    axes.margins(x=0.08, y=0.15)
    if any(point.get("is_chosen") for rows in points.values() for point in rows):
        add_note(axes, "circled: the chosen threshold")
    # The line at the far left has the labels. Lines rise, so the upper left is free.
    first = min(points.values(), key=lambda rows: float(np.mean([row["window"] for row in rows])))
    ordered = sorted(first, key=lambda row: (not row.get("is_chosen"), row["window"]))
    for point in _far_apart(ordered):
        axes.annotate(
            "\u221e" if point["threshold"] is None else f"{point['threshold']:g}",
            (point["window"], point["bleu"]),
            xytext=(-4.0, 6.0),
            textcoords="offset points",
            horizontalalignment="right",
        )
    axes.xaxis.set_major_locator(round_ticks())
    axes.set_xlabel("window (encoder states per step); the numbers are thresholds")
    axes.set_ylabel("BLEU (0 to 100)")
    add_legend(figure, axes)
    return figure


def _far_apart(points: Rows) -> Rows:
    """The points whose labels do not overlap; each is kept if it is far from those before."""
    places = np.array([(point["window"], point["bleu"]) for point in points], np.float64)
    places /= np.maximum(np.ptp(places, axis=0), 1e-9)
    kept: list[int] = []
    for i, place in enumerate(places):
        if all((abs(place - places[k]) > NAME_SIZE).any() for k in kept):
            kept.append(i)
    return [points[i] for i in kept]

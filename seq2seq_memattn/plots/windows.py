"""A figure of BLEU by the share of the source that is read."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from seq2seq_memattn.plots.style import (
    Rows,
    add_legend,
    line_of,
    looks,
    new_figure,
    require_filled,
    round_ticks,
    styled,
)


@styled
def bleu_by_window(points: Mapping[str, Rows], title: str = "") -> Figure:
    """Draws BLEU against the average window, as in figure 3 of Shu and Nakayama (2017).

    Args:
        points: for each data set, records with `window` (encoder states per step), `bleu` (0 to
            100) and `threshold` (None: no threshold), in the order in which a line joins them.
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
    # Each threshold is named once, at its point of the first data set.
    for point in next(iter(points.values())):
        name = "\u221e" if point["threshold"] is None else f"{point['threshold']:g}"
        axes.annotate(
            name,
            (point["window"], point["bleu"]),
            xytext=(-5.0, 3.0),
            textcoords="offset points",
            horizontalalignment="right",
        )
    axes.margins(y=0.15)
    axes.xaxis.set_major_locator(round_ticks())
    axes.set_xlabel("window (encoder states per step); the numbers are thresholds")
    axes.set_ylabel("BLEU (0 to 100)")
    add_legend(figure, axes)
    return figure

"""A figure of the position encodings."""

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from seq2seq_memattn.plots.style import FONT_SIZE, new_figure, round_ticks, styled

COLOURS = "PuOr"  # two hues that colour-blind readers can tell apart, with white between them
STATIONARY = 0.5
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9)  # 0.5 is drawn as two straight lines
LINE: dict[str, Any] = {"colors": "#333333", "linewidths": 0.7}
HALO = withStroke(linewidth=2.0, foreground="white")  # keeps labels readable on dark and light


@styled
def position_surface(encodings: npt.ArrayLike, max_source_length: int, title: str = "") -> Figure:
    """Draws position encodings by slot and source position, as in figure 2 of Britz et al. (2017).

    White is 0.5: the value of the stationary point, which is marked, and of the two lines through
    this point, k = K/2 and s = S/2.

    Args:
        encodings: float [source_length, K], values in [0, 1] for positions s from 0 and slots k
            from 1.
        max_source_length: int > 0. S.
        title: title of the figure.

    Raises:
        ValueError: if there are fewer than 2 positions or 2 slots, or a value is outside [0, 1].
    """
    values = np.asarray(encodings, np.float64)
    if values.ndim != 2 or min(values.shape) < 2:
        raise ValueError(
            "`encodings`: expected shape [source_length, K], both at least 2; "
            f"got {list(values.shape)}"
        )
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise ValueError(
            "`encodings`: expected values from 0 to 1; "
            f"got values from {values.min()} to {values.max()}"
        )
    num_positions, num_slots = values.shape
    positions, slots = np.arange(num_positions), np.arange(1, num_slots + 1)
    figure = new_figure(4.2, title)
    axes = figure.subplots()
    image = axes.pcolormesh(positions, slots, values.T, cmap=COLOURS, vmin=0.0, vmax=1.0)
    image.set_rasterized(True)  # otherwise an SVG has a shape for each of thousands of cells
    contours = axes.contour(positions, slots, values.T, levels=LEVELS, **LINE)
    for label in axes.clabel(contours, fmt="%.1f", fontsize=FONT_SIZE - 2.0):
        label.set_path_effects([HALO])
    centre = max_source_length / 2.0, num_slots / 2.0
    axes.vlines(centre[0], 1, num_slots, **LINE)
    axes.hlines(centre[1], 0, num_positions - 1, **LINE)
    point = f"stationary point: {STATIONARY}"
    axes.plot(*centre, color="black", marker="o", markersize=6.0, linestyle="none", label=point)
    axes.annotate(
        point,
        centre,
        xytext=(8.0, 8.0),
        textcoords="offset points",
        path_effects=[HALO],
    )
    axes.grid(visible=False)
    axes.xaxis.set_major_locator(round_ticks(is_integer=True))
    axes.yaxis.set_major_locator(round_ticks(is_integer=True))
    axes.set_xlabel("source position s (tokens, from 0)")
    axes.set_ylabel("slot k (from 1)")
    figure.colorbar(image, ax=axes, label="position encoding L (a factor)")
    return figure

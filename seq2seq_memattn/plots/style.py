"""What all figures share: style, colours of models, and how a figure becomes a file.

Figures are made and saved under a style of their own, which leaves matplotlib's global settings
as they were. Nothing is shown: there is no pyplot and no window.
"""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.style
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from seq2seq_memattn.attention.registry import ATTENTIONS, K_MEMORY, find, num_slots
from seq2seq_memattn.text.files import atomic_binary

Rows = Sequence[Mapping[str, Any]]

WIDTH = 7.5  # inches; 900 px, the width of a README, at 120 dots per inch
POINTS_PER_INCH = 72.0
FONT_SIZE = 9.0  # points; a character is about 0.6 times as wide
NOTE_COLOUR = "#6b6b6b"
STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": FONT_SIZE,
    "figure.dpi": 120.0,
    "figure.titlesize": FONT_SIZE + 1.0,
    "font.size": FONT_SIZE,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markeredgewidth": 1.0,
    "lines.markersize": 4.5,
    "savefig.dpi": 120.0,
    "svg.hashsalt": "seq2seq_memattn",  # for the names inside an SVG, otherwise random
    "xtick.labelsize": FONT_SIZE - 1.0,
    "ytick.labelsize": FONT_SIZE - 1.0,
}
styled = matplotlib.style.context(["default", STYLE])  # "default": whatever a matplotlibrc says


class Look(NamedTuple):
    """How a model is drawn, in every figure.

    Fields:
        name: in legends.
        colour: "#rrggbb".
        marker: matplotlib's letter for one; colour is never the only difference.
    """

    name: str
    colour: str
    marker: str


SLOT_MARKERS = {1: "o", 4: "s", 16: "^", 32: "D", 64: "v"}  # of other K: "P"

# For labels that name no attention: Okabe and Ito's colours for all kinds of colour vision.
OTHER_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
OTHER_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """The look of each label, in the order of legends.

    Names of attentions, as on the command line, come first and always look the same; others take
    the next colours that are free, in the order given.
    """
    ordered = sorted(labels, key=_rank)
    known = {label: look for label in ordered if (look := _attention_look(label))}
    taken = {look.colour for look in known.values()}
    free = [colour for colour in OTHER_COLOURS if colour not in taken] or OTHER_COLOURS
    others = [label for label in ordered if label not in known]
    return known | {
        label: Look(_name(label), free[i % len(free)], OTHER_MARKERS[i % len(OTHER_MARKERS)])
        for i, label in enumerate(others)
    }


def _name(label: str) -> str:
    """What a legend calls a label, which may be an attention and an addition: k_memory:4 + PE."""
    attention, plus, addition = label.partition(" + ")
    look = _attention_look(attention)
    return f"{look.name}{plus}{addition}" if look else label


def _rank(label: str) -> tuple[int, int]:
    """Its place among legends."""
    slots, order = num_slots(label), list(ATTENTIONS)
    name = K_MEMORY if slots else label
    return (order.index(name) if find(label) else len(order)), slots or 0


def _attention_look(label: str) -> Look | None:
    entry, slots = find(label), num_slots(label)
    if entry is None:
        return None
    if slots is None:
        return Look(entry.label, entry.colour, entry.marker)
    # Shades of the papers' K = 1, 4, 16, 32, 64 that the eye can tell apart; then K = 256.
    shade = np.interp(math.log2(slots), [0, 2, 4, 5, 6, 8], [0.86, 0.69, 0.52, 0.34, 0.15, 0])
    colour = to_hex(colormaps["viridis"](float(shade)))
    return Look(entry.label, colour, SLOT_MARKERS.get(slots, "P"))


@styled
def save(figure: Figure, path: str | Path) -> list[Path]:
    """Writes a figure; each file appears complete or not at all, the same bytes for the same data.

    Args:
        figure: from a function of this package.
        path: the file, in PNG or SVG by its suffix; without suffix, both are written. Its
            directory is made if missing.

    Returns:
        The files written.

    Raises:
        ValueError: if `path` has another suffix.
    """
    path = Path(path)
    if path.suffix not in ("", ".png", ".svg"):
        raise ValueError(f"`path`: expected the suffix .png, .svg or none; got {str(path)!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    files = [path] if path.suffix else [path.with_suffix(".png"), path.with_suffix(".svg")]
    # By default, a PNG tells matplotlib's version, and an SVG that and the date.
    unsaid: dict[str, Any] = {".png": {"Software": None}, ".svg": {"Creator": None, "Date": None}}
    for file in files:
        with atomic_binary(file.resolve()) as stream:
            figure.savefig(stream, format=file.suffix[1:], metadata=unsaid[file.suffix])
    return files


def new_figure(height: float, title: str, width: float = WIDTH) -> Figure:
    """An empty figure of a size in inches, drawn without a window."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(wrapped(title, width, FONT_SIZE + 1.0), parse_math=False)
    return figure


def wrapped(text: str, width: float, font_size: float) -> str:
    """Text in lines of at most `width` inches, as far as its words allow."""
    return textwrap.fill(text, max(1, int(width * POINTS_PER_INCH / (0.6 * font_size))))


def line_of(look: Look) -> dict[str, Any]:
    """Arguments of `Axes.plot` that draw a model's line."""
    return {
        "color": look.colour,
        "label": look.name,
        "marker": look.marker,
        "markerfacecolor": "white",
    }


def round_ticks(is_integer: bool = False) -> MaxNLocator:
    """A few ticks at multiples of 1, 2 or 5 times a power of ten."""
    return MaxNLocator(8, steps=[1, 2, 5, 10], integer=is_integer)


def add_legend(figure: Figure, axes: Axes) -> None:
    """Names the lines of `axes` to the right of everything, where names cover nothing."""
    legend = figure.legend(*axes.get_legend_handles_labels(), loc="outside right center")
    for text in legend.get_texts():
        text.set_parse_math(False)


def add_note(axes: Axes, note: str) -> None:
    """A remark above the right end of `axes`."""
    axes.set_title(note, loc="right", color=NOTE_COLOUR, fontsize=FONT_SIZE - 1.0)


def require_filled(values: Sized, name: str, least: str) -> None:
    """Raises ValueError if an argument that must hold something is empty."""
    if not len(values):
        raise ValueError(f"`{name}`: expected {least} at least; got none")

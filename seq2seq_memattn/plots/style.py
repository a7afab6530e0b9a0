"""The common part of all figures: style, colours of models, and saving to files.

Figures are made and saved under their own style, which does not change matplotlib's global
settings. They are never shown in a window: pyplot is not used.
"""

import contextlib
import math
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
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
    "legend.handlelength": 3.0,  # long enough to tell lines apart
    "lines.linewidth": 1.3,
    "lines.markeredgewidth": 1.0,
    "lines.markersize": 4.5,
    "savefig.dpi": 120.0,
    "svg.hashsalt": "seq2seq_memattn",  # for the names inside an SVG, otherwise random
    "xtick.labelsize": FONT_SIZE - 1.0,
    "ytick.labelsize": FONT_SIZE - 1.0,
}


@contextlib.contextmanager
def _style() -> Iterator[None]:
    """The style of all figures.

    It overrides the user's settings except the fonts, which a writing system may need.
    """
    fonts = matplotlib.rcParams.find_all(r"^font\.(family|sans-serif|serif)$")
    with matplotlib.style.context(["default", STYLE | fonts]):
        yield


styled = _style()


class Look(NamedTuple):
    """How a model is drawn in every figure.

    Fields:
        name: name in legends.
        colour: "#rrggbb".
        marker: matplotlib's letter for a marker, so that lines differ in more than colour.
        line: matplotlib's line style; dashed or dotted for a label with an addition (see `looks`).
    """

    name: str
    colour: str
    marker: str
    line: str = "-"


SLOT_MARKERS = {1: "<", 4: "s", 16: "^", 32: "D", 64: "v"}  # "P" for any other K

# For labels that name no attention: colours that are easy to tell apart and that no attention has.
OTHER_COLOURS = ("#117733", "#cc6677", "#aa4499", "#a6761d", "#003f5c", "#d4b400", "#ee3377")
OTHER_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LABEL_WIDTH = 26  # characters; longer labels of a legend are broken into lines
ADDED_LINES = ("--", ":", "-.")
ADDED_MARKERS = (None, "X", "*")  # None: the marker of the label without the addition


def looks(labels: Iterable[str], order: Sequence[str] = ()) -> dict[str, Look]:
    """The look of each label, in the order of legends.

    Names of attentions, as on the command line, come first and always look the same. Other labels
    take colours that no attention has, in the order given. A label with an addition, such as
    "k_memory:4 + PE" or "bahdanau, tied", has the colour of the label without the addition, and
    another line style. Of the additions to one label, the first also keeps the marker; the
    others have other markers.

    Args:
        labels: labels of the models in a figure.
        order: labels that take the first colours, in this order, even if they are not among
            `labels`. Figures with the same `order` then use the same colours.
    """
    ordered = sorted(labels, key=_rank)
    others = [label for label in ordered if not find(label)]
    bases = {label: _base(label) for label in others}
    added = {
        label: base
        for label, base in bases.items()
        if base != label and (find(base) or base in (*others, *order))
    }
    own = [*order, *(label for label in others if label not in added and label not in order)]
    plain = {
        label: Look(
            label, OTHER_COLOURS[i % len(OTHER_COLOURS)], OTHER_MARKERS[i % len(OTHER_MARKERS)]
        )
        for i, label in enumerate(own)
    }
    found: dict[str, Look] = {}
    for label in ordered:
        base = added.get(label, label)
        look = _attention_look(base) or plain[base]
        if base != label:
            before = [added.get(other) for other in found].count(base)
            kind = before % len(ADDED_LINES)
            marker = ADDED_MARKERS[kind] or look.marker
            name = look.name + label.removeprefix(base)
            look = look._replace(name=name, marker=marker, line=ADDED_LINES[kind])
        found[label] = look
    return found


def _base(label: str) -> str:
    """A label without its addition."""
    return label.partition(", ")[0].partition(" + ")[0]


def _rank(label: str) -> tuple[int, int]:
    """The place of a label in legends."""
    base, order = _base(label), list(ATTENTIONS)
    slots = num_slots(base)
    name = K_MEMORY if slots else base
    return (order.index(name) if find(base) else len(order)), slots or 0


def _attention_look(label: str) -> Look | None:
    entry, slots = find(label), num_slots(label)
    if entry is None:
        return None
    if slots is None:
        return Look(entry.label, entry.colour, entry.marker)
    # Shades that are easy to tell apart for the papers' K = 1, 4, 16, 32, 64, and one for K = 256.
    shade = np.interp(math.log2(slots), [0, 2, 4, 5, 6, 8], [0.86, 0.69, 0.52, 0.34, 0.15, 0])
    colour = to_hex(colormaps["viridis"](float(shade)))
    return Look(entry.label, colour, SLOT_MARKERS.get(slots, "P"))


@styled
def save(figure: Figure, path: str | Path) -> list[Path]:
    """Writes a figure. A file appears complete or not at all; equal data give equal bytes.

    Args:
        figure: a figure from a function of this package.
        path: the file. The suffix selects PNG or SVG; without a suffix, both are written. A missing
            directory is created.

    Returns:
        The files written.

    Raises:
        ValueError: if `path` has another suffix.
    """
    path = Path(path)
    if path.suffix not in ("", ".png", ".svg"):
        raise ValueError(f"`path`: expected the suffix .png, .svg or none; got {str(path)!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    files = files_of(path)
    # By default, a PNG stores matplotlib's version, and an SVG the version and the date.
    unsaid: dict[str, Any] = {".png": {"Software": None}, ".svg": {"Creator": None, "Date": None}}
    for file in files:
        with atomic_binary(file.resolve()) as stream:
            figure.savefig(stream, format=file.suffix[1:], metadata=unsaid[file.suffix])
    return files


def files_of(path: Path) -> list[Path]:
    """The files that `save` writes for a path."""
    return [path] if path.suffix else [path.with_suffix(".png"), path.with_suffix(".svg")]


def new_figure(height: float, title: str, width: float = WIDTH) -> Figure:
    """An empty figure of the given size in inches, drawn without a window."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(wrapped(title, width, FONT_SIZE + 1.0), parse_math=False)
    return figure


def wrapped(text: str, width: float, font_size: float) -> str:
    """Text in lines of about equal length, at most `width` inches, as far as its words allow."""
    narrow = len(text) / (text_width(text) or 1.0)  # below 1 if some characters are wide
    limit = max(1, int(narrow * width * POINTS_PER_INCH / (0.6 * font_size)))
    num_lines = len(textwrap.wrap(text, limit))
    widths = range(max(map(len, text.split()), default=limit), limit)
    even = next((one for one in widths if len(textwrap.wrap(text, one)) <= num_lines), limit)
    return textwrap.fill(text, even)


def text_width(text: str) -> float:
    """The width of text in Latin characters; Chinese and Japanese ones are wider."""
    return sum(1.5 if unicodedata.east_asian_width(one) in "WF" else 1.0 for one in text)


def line_of(look: Look) -> dict[str, Any]:
    """Arguments of `Axes.plot` that draw a model's line."""
    return {
        "color": look.colour,
        "label": look.name,
        "marker": look.marker,
        "linestyle": look.line,
        "markerfacecolor": "white" if look.line == "-" else look.colour,
    }


def round_ticks(is_integer: bool = False, most: int = 8) -> MaxNLocator:
    """A few ticks at multiples of 1, 2 or 5 times a power of ten."""
    return MaxNLocator(most, steps=[1, 2, 5, 10], integer=is_integer)


def add_legend(figure: Figure, axes: Axes) -> None:
    """Adds a legend of the lines of `axes` at the right of the figure, where it covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    labels = [textwrap.fill(one, LABEL_WIDTH, break_long_words=False) for one in labels]
    legend = figure.legend(handles, labels, loc="outside right center")
    for text in legend.get_texts():
        text.set_parse_math(False)


def add_note(axes: Axes, note: str) -> None:
    """Adds a remark above the right end of `axes`."""
    axes.set_title(note, loc="right", color=NOTE_COLOUR, fontsize=FONT_SIZE - 1.0)


def require_filled(values: Sized, name: str, least: str) -> None:
    """Raises ValueError if `values` is empty; `name` and `least` are for the message."""
    if not len(values):
        raise ValueError(f"`{name}`: expected {least} at least; got none")

"""Heat maps of what attention reads."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axis import Axis
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from seq2seq_memattn.plots.style import (
    FONT_SIZE,
    POINTS_PER_INCH,
    WIDTH,
    new_figure,
    require_filled,
    styled,
    text_width,
    wrapped,
)

COLOURS = "Blues"  # white is 0; dark on light, also in greyscale
SIGNED_COLOURS = "RdBu"  # if there are negative values: white is 0, blue above it, red below
UNSCORED = ListedColormap(["#d0d0d0"])
MAX_CHARACTERS = 12  # of a token's label; longer ones are cut
LINE_PITCH = 10.0  # points between the labels of neighbouring tokens
CHARACTER_WIDTH = 5.5  # points
FEW, MANY = 8, 16  # numbers of slots above which panels are drawn smaller, and smaller still
LEAST_SHARE = 0.01  # share of the alignment below which a slot's panel would look blank


class Panel(NamedTuple):
    """One heat map of `alignments`.

    Fields:
        alignment: float [target_length, source_length].
        source_tokens: source_length strings.
        target_tokens: target_length strings.
        title: such as the name of the model.
        scored: bool [target_length, source_length]. False: not scored, drawn grey. None: all
            scored.
    """

    alignment: npt.ArrayLike
    source_tokens: Sequence[str]
    target_tokens: Sequence[str]
    title: str = ""
    scored: npt.ArrayLike | None = None


def alignment(
    alignment: npt.ArrayLike,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    title: str = "",
) -> Figure:
    """Draws one alignment, as `alignments` does; the arguments are the fields of `Panel`."""
    return alignments([Panel(alignment, source_tokens, target_tokens, title)])


@styled
def alignments(panels: Sequence[Panel], title: str = "", relative: bool = False) -> Figure:
    """Draws alignments side by side, with the source downwards and the target to the right.

    The values are scores over the source, or for K-memory the product of beta and alpha, as in
    figures 6 to 8 of Britz, Guan and Luong (2017). Negative values, which linear attention can
    have, are red. With `Panel.scored`, the figure also shows which spans were scored, as in figure
    4 of Shu and Nakayama (2017).

    Args:
        panels: what to draw, three panels to a row.
        title: title of the figure.
        relative: whether the darkest colour stands for the highest value of each panel, which the
            panel's title then states, instead of the highest value of all panels. Use it for
            alignments that do not sum to 1.

    Raises:
        ValueError: if there is no panel, an alignment does not have the shape of its tokens, or a
            value is not finite.
    """
    require_filled(panels, "panels", "a panel")
    checked = []
    for panel in panels:
        shape = {"target_length": panel.target_tokens, "source_length": panel.source_tokens}
        values = _checked(panel.alignment, "alignment", shape, least=-math.inf)
        checked.append(panel._replace(alignment=values))
        if panel.scored is not None:
            _checked(panel.scored, "scored", shape)
    meaning = "alignment"
    if any(panel.scored is not None for panel in panels):
        meaning += ", grey where nothing was scored"
    if relative:
        checked = [_relative(panel) for panel in checked]
        meaning = "share of the panel's highest"
    return _heat_maps(checked, 3, meaning, title)


def _relative(panel: Panel) -> Panel:
    highest = float(np.max(np.abs(panel.alignment)))
    return panel._replace(
        alignment=np.asarray(panel.alignment) / (highest or 1.0),
        title=f"{panel.title} (highest:\u00a0{highest:.2g})".strip(),
    )


@styled
def slots(
    alpha: npt.ArrayLike,
    beta: npt.ArrayLike,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    max_slots: int = 8,
    title: str = "",
) -> Figure:
    """Draws what each slot of a K-memory adds to the alignment: beta times alpha, slot by slot.

    As in figures 6 and 7 of Britz, Guan and Luong (2017). The title of each panel is the slot's
    number k in 1..K and its share of the sum of the alignment.

    Args:
        alpha: float [source_length, K].
        beta: float [target_length, K].
        source_tokens: source_length strings.
        target_tokens: target_length strings.
        max_slots: int > 0. The maximum number of slots to draw. The slots with the largest shares
            are drawn, except those with a share below one hundredth. A note counts the slots that
            are left out. Up to 8 slots are drawn two to a row, up to 16 smaller and four to a row,
            and more than 16 smaller still and eight to a row.
        title: title of the figure.

    Raises:
        ValueError: if alpha or beta does not have the shape of its tokens, they differ in K, a
            value is negative or not finite, or `max_slots` is not positive.
    """
    if max_slots < 1:
        raise ValueError(f"`max_slots`: expected a positive number; got {max_slots}")
    num_slots = np.shape(beta)[-1] if np.ndim(beta) else 0
    alpha = _checked(alpha, "alpha", {"source_length": source_tokens, "K": range(num_slots)})
    beta = _checked(beta, "beta", {"target_length": target_tokens, "K": range(num_slots)})
    parts = beta.T[:, :, None] * alpha.T[:, None, :]  # [K, target_length, source_length]
    sums = parts.sum(axis=(1, 2))
    shares = sums / (sums.sum() or 1.0)
    most = np.argsort(-shares, kind="stable")
    shown = np.sort(most[: max(1, min(max_slots, int((shares >= LEAST_SHARE).sum())))])
    panels = [
        Panel(parts[k], source_tokens, target_tokens, f"k = {k + 1} ({shares[k]:.1%})")
        for k in shown
    ]
    note = f"all {num_slots} slots"
    if left_out := num_slots - len(shown):
        rest = 1.0 - shares[shown].sum()
        others = f"{left_out} other{'s' if left_out > 1 else ''}: {rest:.1%}"
        note = f"the {len(shown)} most used of {num_slots} slots; {others} of the weight"
    heading = f"{title}: {note}" if title else note
    columns = 2 if len(panels) <= FEW else 4 if len(panels) <= MANY else 8
    return _heat_maps(panels, columns, "\u03b2 \u00b7 \u03b1 of one slot", heading)


def _checked(
    values: npt.ArrayLike, name: str, shape: dict[str, Sequence[Any]], least: float = 0.0
) -> npt.NDArray[np.float64]:
    """The values as an array; ValueError unless they fit `shape` and are finite and >= `least`."""
    array = np.asarray(values, np.float64)
    sizes = [len(entries) for entries in shape.values()]
    if list(array.shape) != sizes or not array.size:
        raise ValueError(
            f"`{name}`: expected shape [{', '.join(shape)}] = {sizes}, none of them 0; "
            f"got {list(array.shape)}"
        )
    if not (np.isfinite(array) & (array >= least)).all():
        raise ValueError(
            f"`{name}`: expected finite values{', none below 0' if least == 0.0 else ''}; "
            f"got values from {array.min()} to {array.max()}"
        )
    return array


def _heat_maps(panels: Sequence[Panel], max_columns: int, meaning: str, title: str) -> Figure:
    """Draws panels on a grid with one colour bar.

    A panel omits the names of its source tokens if the panel to its left has the same ones, and of
    its target tokens if the panel below has the same ones.
    """
    columns = min(len(panels), max_columns)
    rows = -(-len(panels) // columns)
    width = WIDTH if columns > 1 else 0.75 * WIDTH
    side = (width - 1.5) / columns  # inches of a panel, without labels
    figure = new_figure(rows * (side + 0.25) + 0.9, title, width)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for unused in grid[len(panels) :]:
        unused.remove()
    grid = grid[: len(panels)]
    highest = max(float(np.max(np.abs(panel.alignment))) for panel in panels) or 1.0
    is_signed = any(float(np.min(panel.alignment)) < 0.0 for panel in panels)
    sources = [[_label(token) for token in panel.source_tokens] for panel in panels]
    targets = [[_label(token) for token in panel.target_tokens] for panel in panels]
    every_source, every_target = _thinning(sources, side), _thinning(targets, side)
    for i, (axes, panel) in enumerate(zip(grid, panels, strict=True)):
        image = axes.imshow(
            np.transpose(panel.alignment),  # [source_length, target_length]
            cmap=SIGNED_COLOURS if is_signed else COLOURS,
            vmin=-highest if is_signed else 0.0,
            vmax=highest,
            aspect="auto",
            interpolation="nearest",
        )
        if panel.scored is not None:
            unscored = np.ma.masked_where(np.transpose(panel.scored), np.ones(image.get_size()))
            axes.imshow(unscored, cmap=UNSCORED, aspect="auto", interpolation="nearest")
        axes.set_title(wrapped(panel.title, side, FONT_SIZE), parse_math=False)
        axes.grid(visible=False)
        axes.spines[:].set_visible(True)
        is_left = i % columns == 0 or sources[i] != sources[i - 1]
        _name_tokens(axes.yaxis, sources[i] if is_left else [], every_source)
        is_lowest = i + columns >= len(panels) or targets[i] != targets[i + columns]
        _name_tokens(axes.xaxis, targets[i] if is_lowest else [], every_target, side)
    figure.supylabel(_axis_label("source", every_source), fontsize=FONT_SIZE)
    figure.supxlabel(_axis_label("target", every_target), fontsize=FONT_SIZE)
    figure.colorbar(image, ax=list(grid), label=meaning, aspect=30.0)
    return figure


def _label(token: str) -> str:
    token = token if token.isprintable() else repr(token)[1:-1]
    return token if len(token) <= MAX_CHARACTERS else token[: MAX_CHARACTERS - 1] + "\u2026"


def _thinning(sequences: Sequence[Sequence[str]], side: float) -> int:
    """The smallest round n for which every n-th label of each sequence fits in `side` inches."""
    room = side * POINTS_PER_INCH / LINE_PITCH
    longest = max(len(labels) for labels in sequences)
    return next(n for n in _round_numbers() if longest <= n * room)


def _round_numbers() -> Iterator[int]:
    for power in itertools.count():
        yield from (10**power, 2 * 10**power, 5 * 10**power)


def _name_tokens(axis: Axis, labels: Sequence[str], every: int, side: float = math.inf) -> None:
    """Labels every n-th token on an axis, vertically if the labels do not fit in `side` inches."""
    named = labels[::every]
    points = len(named) * (CHARACTER_WIDTH * max(map(text_width, named), default=0.0) + 4.0)
    rotation = 90.0 if points > side * POINTS_PER_INCH else 0.0
    axis.set_ticks(range(0, len(labels), every), named, rotation=rotation, parse_math=False)


def _axis_label(which: str, every: int) -> str:
    return f"{which} tokens" if every == 1 else f"{which} tokens (one in {every} is named)"

"""Pictures of what attention looks at."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from .style import FONT_SIZE, WIDTH, new_figure, require_filled, styled

COLOURS = "Blues"  # white is nothing: dark on light, also in grey
MAX_CHARACTERS = 12  # of a token's label; longer ones are cut


class Panel(NamedTuple):
    """One heat map of `alignments`.

    Fields:
        alignment: float [target_length, source_length].
        source_tokens: source_length strings.
        target_tokens: target_length strings.
        title: such as the name of the model.
    """

    alignment: npt.ArrayLike
    source_tokens: Sequence[str]
    target_tokens: Sequence[str]
    title: str = ""


def alignment(
    alignment: npt.ArrayLike,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    title: str = "",
) -> Figure:
    """One alignment, as `alignments` draws it; the arguments are the fields of `Panel`."""
    return alignments([Panel(alignment, source_tokens, target_tokens, title)])


@styled
def alignments(panels: Sequence[Panel], title: str = "") -> Figure:
    """Alignments side by side, source downwards and target to the right, in one scale.

    As in figures 6 to 8 of the memory paper: scores over the source, or for K-memory the product
    of beta and alpha.

    Args:
        panels: what to draw, three in a row.
        title: of the figure.

    Raises:
        ValueError: if there is no panel, an alignment has not the shape of its tokens, or a value
            is not finite.
    """
    require_filled(panels, "panels", "a panel")
    checked = []
    for panel in panels:
        axes = {"target_length": panel.target_tokens, "source_length": panel.source_tokens}
        checked.append(panel._replace(alignment=_checked(panel.alignment, "alignment", axes)))
    meaning = "alignment (attention score; K-memory: \u03b2 \u00b7 \u03b1)"
    return _heat_maps(checked, 3, meaning, title)


@styled
def slots(
    alpha: npt.ArrayLike,
    beta: npt.ArrayLike,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    max_slots: int = 8,
    title: str = "",
) -> Figure:
    """What each slot of a K-memory adds to the alignment: beta times alpha, slot by slot.

    As in figures 6 and 7 of the memory paper. Each slot is headed by its number k in 1..K and
    its share of the alignment's sum.

    Args:
        alpha: float [source_length, K].
        beta: float [target_length, K].
        source_tokens: source_length strings.
        target_tokens: target_length strings.
        max_slots: int > 0. Slots with smaller shares than so many others are left out, and
            counted in a note.
        title: of the figure.

    Raises:
        ValueError: if alpha or beta has not the shape of its tokens, they differ in K, a value is
            not finite or `max_slots` is not positive.
    """
    if max_slots < 1:
        raise ValueError(f"`max_slots`: expected a positive number; got {max_slots}")
    alpha = _checked(alpha, "alpha", {"source_length": source_tokens, "K": None})
    beta = _checked(beta, "beta", {"target_length": target_tokens, "K": alpha[0]})
    parts = beta.T[:, :, None] * alpha.T[:, None, :]  # [K, target_length, source_length]
    sums = parts.sum(axis=(1, 2))
    shares = sums / (sums.sum() or 1.0)
    shown = np.sort(np.argsort(-shares, kind="stable")[:max_slots])
    panels = [
        Panel(parts[k], source_tokens, target_tokens, f"k = {k + 1} ({shares[k]:.0%})")
        for k in shown
    ]
    left_out = len(shares) - len(shown)
    note = f"{len(shares)} slots"
    if left_out:
        rest = 1.0 - shares[shown].sum()
        note = f"the {len(shown)} most used of {len(shares)} slots; the {left_out} left out hold {rest:.1%}"
    return _heat_maps(panels, 4, "\u03b2\u2096 \u00b7 \u03b1\u2096", f"{title}: {note}" if title else note)


def _checked(
    values: npt.ArrayLike, name: str, axes: dict[str, Sequence[str] | None]
) -> npt.NDArray[np.float64]:
    """An array with as many elements along each axis as the axis has entries, if it has any."""
    array = np.asarray(values, np.float64)
    sizes = [len(entries) if entries is not None else None for entries in axes.values()]
    return array


def _heat_maps(panels: Sequence[Panel], columns: int, meaning: str, title: str) -> Figure:
    raise NotImplementedError

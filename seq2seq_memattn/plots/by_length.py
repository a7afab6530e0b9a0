"""Figures of quality and time by the length of sequences."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from matplotlib.transforms import ScaledTranslation

from seq2seq_memattn.plots.style import (
    NOTE_COLOUR,
    POINTS_PER_INCH,
    Look,
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

REFERENCE = "bahdanau"  # the paper's times are scaled so that this attention's equal ours
BESIDE = 4.0 / POINTS_PER_INCH  # inches between the bars of neighbouring attentions at one length
SHORTEST_4_GRAM = 4  # tokens; shorter lines have no 4-grams


class _Group(NamedTuple):
    """Lines of similar length; lengths in tokens."""

    shortest: int
    longest: int
    lines: int

    def name(self) -> str:
        return "\u2013".join(str(length) for length in sorted({self.shortest, self.longest}))


@styled
def bleu_by_length(groups: Mapping[str, Rows], title: str = "") -> Figure:
    """Draws BLEU and the share of exactly right lines by the length of the reference.

    If no line of a group has at least four tokens, there are no 4-grams, and no BLEU is drawn.

    Args:
        groups: for each model, what `seq2seq_memattn.metrics.bleu_by_length` returns, with the
            same references for all.
        title: title of the figure.

    Raises:
        ValueError: if there is no model or no group, or the models' groups differ.
    """
    shared = _shared_groups(groups)
    figure = new_figure(3.4, title)
    bleu, exact = figure.subplots(1, 2)
    drawn = looks(groups)
    for i, (model, look) in enumerate(drawn.items()):
        # Side by side within a group, since many values are close to 100.
        at = np.arange(len(shared)) + 0.5 * ((i + 0.5) / len(drawn) - 0.5)
        rows = groups[model]
        scores = [r["bleu"] if r["longest"] >= SHORTEST_4_GRAM else math.nan for r in rows]
        bleu.plot(at, scores, **line_of(look))
        exact.plot(at, [100.0 * row["exact"] for row in rows], **line_of(look))
    _finish(bleu, shared, "BLEU (0 to 100)")
    _finish(exact, shared, "lines exactly right (%)")
    for i, group in enumerate(shared):
        if group.longest < SHORTEST_4_GRAM:
            bleu.text(
                i,
                0.5,
                "no 4-grams",
                transform=bleu.get_xaxis_transform(),
                color=NOTE_COLOUR,
                rotation=90.0,
                horizontalalignment="center",
                verticalalignment="center",
            )
    least, most = (f"{end(group.lines for group in shared):,}" for end in (min, max))
    add_note(exact, f"{least if least == most else f'{least} to {most}'} lines per group")
    add_legend(figure, bleu)
    return figure


def _shared_groups(groups: Mapping[str, Rows]) -> list[_Group]:
    require_filled(groups, "groups", "a model")
    found = {
        model: [_Group(row["shortest"], row["longest"], row["lines"]) for row in rows]
        for model, rows in groups.items()
    }
    first, shared = next(iter(found.items()))
    require_filled(shared, f"groups[{first!r}]", "a group")
    for model, theirs in found.items():
        if theirs != shared:
            raise ValueError(
                f"`groups`: expected the same lengths and lines for all models; "
                f"got {shared} for {first!r}, {theirs} for {model!r}"
            )
    return shared


def _finish(axes: Axes, groups: Sequence[_Group], label: str) -> None:
    """Labels axes and scales them from a round number below the lowest value up to 100."""
    axes.set_xticks(range(len(groups)), [group.name() for group in groups])
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.grid(axis="x", visible=False)
    axes.set_xlabel("reference length (tokens)")
    axes.set_ylabel(label)
    values = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
    lowest = np.min(values[np.isfinite(values)], initial=90.0)
    bottom = 10.0 * math.floor(lowest / 10.0)
    margin = 0.03 * (100.0 - bottom)
    axes.set_ylim(bottom - margin, 100.0 + margin)
    axes.yaxis.set_major_locator(round_ticks(is_integer=True))


@styled
def time_by_length(rows: Rows, paper: Rows = (), title: str = "") -> Figure:
    """Draws the time of decoding or training by source length, one line for each attention.

    Args:
        rows: records with `attention`, `length` (tokens) and `seconds`, all measured in the same
            way on one machine. If a record also has `all_seconds`, the times of repeats, a bar
            extends from the shortest to the longest time, and points are shifted sideways so that
            bars do not overlap.
        paper: records of the same form from another machine. They are drawn dashed. At each length,
            they are scaled so that their time for Bahdanau's attention equals that in `rows`.
        title: title of the figure, such as the hardware and what was done.

    Raises:
        ValueError: if `rows` is empty or has two times for one point, or if `paper` is given and
            Bahdanau's attention is missing on either side.
    """
    ours = _by_attention(rows, "rows", "seconds")
    as_in_paper: dict[str, dict[int, float]] = {}
    if paper:
        as_in_paper = _scaled(_by_attention(paper, "paper", "seconds"), ours)
    figure = new_figure(3.6, title)
    axes = figure.subplots()
    drawn = _draw_lines(axes, ours)
    for place, (attention, look) in enumerate(drawn.items()):
        if repeats := _repeats(rows, attention, "seconds"):
            # Side by side, since many ranges overlap.
            beside = (place - (len(drawn) - 1) / 2.0) * BESIDE
            aside = axes.transData + ScaledTranslation(beside, 0.0, figure.dpi_scale_trans)
            axes.lines[place].set_transform(aside)
            _draw_ranges(axes, repeats, look).set_transform(aside)
    dashed: dict[str, Any] = {"linestyle": "--", "linewidth": 1.0}
    for attention in [name for name in drawn if name in as_in_paper]:
        axes.plot(*_points(as_in_paper[attention]), color=drawn[attention].colour, **dashed)
    if as_in_paper:
        name = looks([REFERENCE])[REFERENCE].name
        axes.plot(
            [], [], color=NOTE_COLOUR, label=f"as in the paper,\nrelative to {name}", **dashed
        )
    _name_axes(axes, "time (seconds)")
    lengths = _lengths(ours)
    axes.set_xlim(left=0.0)
    if len(lengths) > 1:  # the shorter lengths would crowd at the left of an axis from 0
        axes.set_xscale("log")
        axes.set_xlim(lengths[0] / 1.2, lengths[-1] * 1.2)
        axes.set_xlabel(f"{axes.get_xlabel()}, log scale")
    _name_lengths(axes, lengths)
    axes.xaxis.set_minor_locator(NullLocator())
    if any(row.get("all_seconds") for row in rows):
        add_note(axes, "vertical bars: shortest to longest repeat; points are shifted sideways")
    add_legend(figure, axes)
    return figure


@styled
def step_time_by_length(rows: Rows, title: str = "") -> Figure:
    """Draws the time of one decoder step by source length, one line for each attention.

    Args:
        rows: records with `attention`, `length` (tokens) and `ms_per_step`, all measured in the
            same way on one machine. If a record also has `seconds` and `all_seconds`, the times of
            repeats, a bar extends from the shortest to the longest time.
        title: title of the figure, such as the hardware and what was done.

    Raises:
        ValueError: if `rows` is empty or has two times for one point.
    """
    times = _by_attention(rows, "rows", "ms_per_step")
    figure = new_figure(3.6, title)
    axes = figure.subplots()
    for attention, look in _draw_lines(axes, times).items():
        _draw_ranges(axes, _repeats(rows, attention, "ms_per_step"), look)
    if any(row.get("all_seconds") for row in rows):
        add_note(axes, "vertical bars: range of the repeats, encoding included")
    _name_axes(axes, "time per decoder step (ms)")
    _name_lengths(axes, _apart(_lengths(times)))
    axes.set_xlim(left=0.0)
    add_legend(figure, axes)
    return figure


def _draw_lines(axes: Axes, times: dict[str, dict[int, float]]) -> dict[str, Look]:
    """Draws a line for each attention; returns their looks."""
    drawn = looks(times)
    for attention, look in drawn.items():
        axes.plot(*_points(times[attention]), **line_of(look))
    return drawn


def _repeats(rows: Rows, attention: str, value: str) -> dict[int, list[float]]:
    """`value` of each repeat, by length: scaled from the repeat's seconds; {} without repeats.

    A repeat's seconds include encoding, so the range is that of the whole search.
    """
    return {
        row["length"]: [row[value] * (each / row["seconds"]) for each in all_seconds]
        for row in rows
        if row["attention"] == attention and (all_seconds := row.get("all_seconds"))
    }


def _draw_ranges(axes: Axes, repeats: Mapping[int, Sequence[float]], look: Look) -> LineCollection:
    """Draws a bar from the shortest to the longest time at each length."""
    least, most = ([of(times) for times in repeats.values()] for of in (min, max))
    return axes.vlines(list(repeats), least, most, color=look.colour, linewidth=1.0)


def _name_axes(axes: Axes, label: str) -> None:
    """Labels the axes: lengths on the x-axis, values from 0 on the y-axis."""
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("source length (tokens)")
    axes.set_ylabel(label)


def _lengths(times: dict[str, dict[int, float]]) -> list[int]:
    return sorted({length for of_one in times.values() for length in of_one})


def _name_lengths(axes: Axes, lengths: Sequence[int]) -> None:
    axes.set_xticks(lengths, [f"{length:,}" for length in lengths])


def _by_attention(rows: Rows, name: str, value: str) -> dict[str, dict[int, float]]:
    """Values by attention and length."""
    require_filled(rows, name, "a row")
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        times = found.setdefault(row["attention"], {})
        if row["length"] in times:
            raise ValueError(
                f"`{name}`: expected one row for each attention and length, all of one mode; "
                f"got two for {row['attention']!r} at {row['length']}"
            )
        times[row["length"]] = row[value]
    return found


def _scaled(
    paper: dict[str, dict[int, float]], ours: dict[str, dict[int, float]]
) -> dict[str, dict[int, float]]:
    """The paper's times of other attentions, scaled so that its `REFERENCE` times equal ours."""
    if REFERENCE not in ours or REFERENCE not in paper:
        raise ValueError(
            f"`rows`, `paper`: expected times of {REFERENCE} in both; "
            f"got {sorted(ours)} here and {sorted(paper)} there"
        )
    here, there = ours[REFERENCE], paper[REFERENCE]
    return {
        attention: {n: t / there[n] * here[n] for n, t in times.items() if n in here and n in there}
        for attention, times in paper.items()
        if attention != REFERENCE
    }


def _apart(lengths: Sequence[int]) -> list[int]:
    """Those of the sorted lengths whose labels do not overlap; the longest is always kept."""
    kept: list[int] = []
    for length in reversed(lengths):
        if not kept or kept[-1] - length >= 0.05 * kept[0]:
            kept.append(length)
    return kept[::-1]


def _points(times: dict[int, float]) -> tuple[list[int], list[float]]:
    lengths = sorted(times)
    return lengths, [times[length] for length in lengths]

"""Figures 3 to 5 of the memory paper: learning curves of rows of its tables.

A figure has no runs of its own: its rows, with their runs and results, are those of
Table 1, Table 2 and `ambiguities`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import ambiguities, study, table1, table2
from experiments.copy_rows import short_name
from experiments.study import Row, Scale, Study
from experiments.subject import Groups, Results, Subject, learning_curves, sources

# Figure 3b: the pairs of `ambiguities`, equation 5 as it is by default.
COPY_PAIRS = (
    "softmax_time_softmax",
    "softmax_time_sigmoid",
    "sigmoid_softmax",
    "sigmoid_sigmoid",
)
FIGURE4_FULL = [
    f"wmt17_{pair}_{name}"
    for pair in ("en_fi", "en_tr")
    for name in ("k32_pe", "k64_pe", "bahdanau")
]
FIGURE4_SMALL = [f"multi30k_en_de_{name}" for name in table2.MULTI30K_ROWS]
FIGURE5 = {"full": "wmt17_en_fi_k64", "small": "multi30k_en_de_k32", "tiny": "multi30k_en_de_k32"}

OF_CURVES = "BLEU of the validation set during training, by beam search."

FIGURE3A_INTRODUCTION = f"""
The paper's Figure 3a has learning curves on copies of sequences of at most 200 symbols: with K = 32
and 64 the data are fitted almost as quickly as with attention, with K = 1 they are not, and small K
is close to no attention. Here: the rows of Table 1 of the largest L at which all began with random
weights and not with those of a shorter L. {OF_CURVES}
"""
FIGURE3B_INTRODUCTION = f"""
The paper's Figure 3b has learning curves on the copy task for the four pairs of scores, named
encoder / decoder: all fit the data, and some converge sooner. It names neither L nor K. Here: rows
of `ambiguities`, L = 20; the encoder's softmax is over the source, which is the default.
{OF_CURVES}
"""
FIGURE4_INTRODUCTION = f"""
The paper's Figure 4 has learning curves of English-Finnish and English-Turkish, K-memory with
position encodings, sigmoid while encoding and softmax while decoding, beside attention: with enough
slots K-memory is on a par, and English-Turkish converges very quickly. Here: rows of Table 2; those
of Multi30k have two softmaxes, and position encodings where it is said (PE). {OF_CURVES}
"""
FIGURE5_INTRODUCTION = f"""
The paper's Figure 5 has learning curves of English-Finnish, K = 64, for the four pairs of scores,
named encoder / decoder: two softmaxes do consistently badly, the other three about equally well.
Here: a row of Table 2 with each pair; the encoder's softmax is over the source, which is the
default. {OF_CURVES}
"""


def make_figure3a(scale: Scale, names: Sequence[str], *where: Path) -> Study:
    """The rows of Table 1 of the largest length that was trained from scratch.

    Args:
        scale, names: as in `table1.make_study`.
        where: work_dir and results_dir.

    Raises:
        ValueError: for a name that is no row of the figure.
    """
    rows = longest_from_scratch(table1.make_study(scale, [], *where).rows)
    return study.make_study(rows, names, f"table1/{scale}", *where)


def longest_from_scratch(rows: Sequence[Row]) -> list[Row]:
    """Of rows of Table 1 those of the largest L, at any scale, but none that begin with others."""
    by_length: dict[int, list[Row]] = {}
    for row in rows:
        if not row.init_from:
            by_length.setdefault(int(row.config.split("_")[1]), []).append(row)
    return by_length[max(by_length)]


def make_figure3b(scale: Scale, names: Sequence[str], *where: Path) -> Study:
    """The rows of `ambiguities` that differ in their pairs of scores alone.

    Args:
        scale, names, where: as in `make_figure3a`.

    Raises:
        ValueError: for a name that is no row of the figure.
    """
    wanted = {f"k{slots}_{pair}" for slots in ambiguities.SLOTS for pair in COPY_PAIRS}
    rows = [row for row in ambiguities.make_study(scale, [], *where).rows if row.name in wanted]
    return study.make_study(rows, names, f"ambiguities/{scale}", *where)


def make_figure4(scale: Scale, names: Sequence[str], *where: Path) -> Study:
    """Rows of Table 2: at full scale those of the paper's figure, else Multi30k's.

    Args:
        scale, names, where: as in `make_figure3a`.

    Raises:
        ValueError: for a name that is no row of the figure.
    """
    wanted = FIGURE4_FULL if scale == "full" else FIGURE4_SMALL
    rows = [row for row in table2.make_study(scale, [], *where).rows if row.name in wanted]
    return study.make_study(rows, names, f"table2/{scale}", *where)


def make_figure5(scale: Scale, names: Sequence[str], *where: Path) -> Study:
    """A row of Table 2 and the same with the other three pairs of scores.

    Args:
        scale, names, where: as in `make_figure3a`.

    Raises:
        ValueError: for a name that is no row of the figure.
    """
    of = table2.make_study(scale, [], *where)
    (row,) = (row for row in of.rows if row.name == FIGURE5[scale])
    rows = [row, *table2.with_other_pairs(row)]
    return study.make_study(rows, names, f"table2/{scale}", *where)


def by_pair(groups: Groups) -> Groups:
    """Groups of one K each, whose curves are called by their pairs of scores."""

    def renamed(results: Results) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for name, members in groups(results).items():
            for result in members:
                model = result["configuration"]["model"]
                pair = f"{model['encoder_score']} / {model['decoder_score']}"
                group = f"{name}_{short_name(model['attention'])}"
                found.setdefault(group, []).append({**result, "curve_name": pair})
        return found

    return renamed


def copy_title(group: str) -> str:
    """The title of a group: L = 20, K = 32 for l20_k32."""
    sizes = (f"{part[0].upper()} = {part[1:]}" for part in group.split("_"))
    return f"Copy task, {', '.join(sizes)}"


def translation_title(group: str) -> str:
    """The title of a group: Multi30k, en-de, K = 32 for multi30k_en_de_k32."""
    _, _, slots = group.partition("_k")
    return ", ".join([table2.group_title(group), *([f"K = {slots}"] if slots else [])])


SUBJECTS = {
    "figure3a": Subject(
        "Figure 3a: learning to copy, by model",
        lambda scale: FIGURE3A_INTRODUCTION,
        make_figure3a,
        Study.finished,
        sources,
        learning_curves(table1.figures, copy_title),
    ),
    "figure3b": Subject(
        "Figure 3b: learning to copy, by pair of scores",
        lambda scale: FIGURE3B_INTRODUCTION,
        make_figure3b,
        Study.finished,
        sources,
        learning_curves(by_pair(table1.figures), copy_title),
    ),
    "figure4": Subject(
        "Figure 4: learning to translate, by model",
        lambda scale: FIGURE4_INTRODUCTION,
        make_figure4,
        Study.finished,
        sources,
        learning_curves(table2.figures, translation_title),
    ),
    "figure5": Subject(
        "Figure 5: learning to translate, by pair of scores",
        lambda scale: FIGURE5_INTRODUCTION,
        make_figure5,
        Study.finished,
        sources,
        learning_curves(by_pair(table2.figures), translation_title),
    ),
}

"""Figures 6 to 8 of the memory paper: where K-memory looks, slot by slot and combined.

A figure has no run of its own: its row, with its run and result, is one of Table 1 or Table 2.
"""

from collections.abc import Sequence
from pathlib import Path

from experiments import study, table1, table2
from experiments.jobs import run_command
from experiments.study import Scale, Study
from experiments.subject import Draw, Results, Subject, sources
from seq2seq_memattn.text.files import read_lines

FIGURE6_ROW = "copy_100_k32"
FIGURE7_ROW = "copy_20_k4"
FIGURE8_ROWS = {
    "full": "wmt17_en_de_k32",
    "small": "multi30k_en_de_k32",
    "tiny": "multi30k_en_de_k32",
}
FIGURE8_PAIR = "sigmoid_sigmoid"
FIGURE6_LENGTH = 100  # symbols, as the data set's name says
FIGURE7_LENGTH = 11  # symbols
FIGURE8_LENGTH = 12  # words; the paper's sentence is not told
MAX_SLOTS = 32  # all of them

WHAT = """
Drawn is the product of the decoder's and the encoder's scores, beta and alpha (section 5), along
the best hypothesis of beam search (10): for each slot, and summed over all. Source downwards,
target to the right, the end token included. The sample is the first line of the validation set that
has as many tokens as said, or else as many as the set has below that.
"""
FIGURE6_INTRODUCTION = f"""
The paper's Figure 6 has the attention scores on a sample of the copy task of L = 100, each
attention vector highlighted: with softmax a nearly linear map from source to target, with sigmoid a
memory spread over the source, of which each step reads several contiguous parts. Here: K = 32 of
Table 1, L = 100, softmax for both scores, {FIGURE6_LENGTH} symbols. {WHAT.strip()}
"""
FIGURE7_INTRODUCTION = f"""
The paper's Figure 7 has the attention scores of K = 4 on a sample of length 11, each attention
vector in a colour of its own: each attends to a stretch of the source. Here: K = 4 of Table 1, L =
20, {FIGURE7_LENGTH} symbols. {WHAT.strip()}
"""
FIGURE8_INTRODUCTION = f"""
The paper's Figure 8 has the attention scores on an English-German translation, K = 32 with
sigmoids, the attention vectors by themselves and combined. Here: K = 32 of Table 2 with two
sigmoids, a sentence of {FIGURE8_LENGTH} words. {WHAT.strip()}
"""


def make_figure6(scale: Scale, names: Sequence[str], *where: Path) -> Study:
    """The row of Table 1 that the figure is of.

    Args:
        scale, names: as in `table1.make_study`.
        where: work_dir and results_dir.

    Raises:
        ValueError: for a name that is no row of the figure.
    """
    rows = [table1.table1_row(FIGURE6_ROW, scale)]
    return study.make_study(rows, names, f"table1/{scale}", *where)


def make_figure7(scale: Scale, names: Sequence[str], *where: Path) -> Study:
    """The row of Table 1 that the figure is of; arguments and errors as of `make_figure6`."""
    rows = [table1.table1_row(FIGURE7_ROW, scale)]
    return study.make_study(rows, names, f"table1/{scale}", *where)


def make_figure8(scale: Scale, names: Sequence[str], *where: Path) -> Study:
    """The row of Table 2, with the figure's pair of scores; else as `make_figure6`."""
    known = {row.name: row for row in table2.make_study(scale, [], *where).rows}
    pairs = table2.with_other_pairs(known[FIGURE8_ROWS[scale]])
    rows = [row for row in pairs if row.name.endswith(FIGURE8_PAIR)]
    return study.make_study(rows, names, f"table2/{scale}", *where)


def draw_sample(num_tokens: int) -> Draw:
    """What draws a sample of so many tokens for a study of one row: by slot, and combined.

    Where the run is not there any more, the figures stay as they are; without them, that is an
    error, which says what is needed.
    """

    def draw(of: Study, results: Results, stem: Path) -> dict[str, str]:
        (row,) = of.rows
        del results
        paths = [stem.with_name(f"{stem.name}_{row.name}{end}") for end in ("_slots", "")]
        source = of.data_dir / row.data.folder / "valid.source.txt"
        if source.exists() and (of.runs_dir / row.name).exists():
            run_command(draw_arguments(of.runs_dir / row.name, source, num_tokens, *paths))
        elif not all(path.with_suffix(".png").exists() for path in paths):
            raise ValueError(
                f"{of.runs_dir / row.name}: expected the run, and {source}; they are made again "
                f"without {of.result_path(row)}, which is the result of a run that is elsewhere"
            )
        shown = (f"Each slot, {row.label}", f"All slots, {row.label}")
        names = [path.name.removeprefix(f"{stem.name}_") for path in paths]
        return dict(zip(names, shown, strict=True))

    return draw


def draw_arguments(
    run_dir: Path, source: Path, num_tokens: int, slots: Path, combined: Path
) -> list[str]:
    """The command that draws a sample, behind `python -m`."""
    line = line_of(read_lines(str(source)), num_tokens)
    return [
        "experiments.draw_alignment",
        f"--run_dir={run_dir}",
        f"--source={source}",
        f"--lines={line}",
        f"--output={combined}",
        f"--slots_output={slots}",
        f"--max_slots={MAX_SLOTS}",
    ]


def line_of(lines: Sequence[str], num_tokens: int) -> int:
    """The number, from 1, of the first line of the longest that have at most so many tokens."""
    lengths = [len(line.split()) for line in lines]
    return 1 + lengths.index(max(length for length in lengths if length <= num_tokens))


SUBJECTS = {
    "figure6": Subject(
        "Figure 6: where K = 32 slots look when copying",
        lambda scale: FIGURE6_INTRODUCTION,
        make_figure6,
        Study.finished,
        sources,
        draw_sample(FIGURE6_LENGTH),
    ),
    "figure7": Subject(
        "Figure 7: where K = 4 slots look when copying",
        lambda scale: FIGURE7_INTRODUCTION,
        make_figure7,
        Study.finished,
        sources,
        draw_sample(FIGURE7_LENGTH),
    ),
    "figure8": Subject(
        "Figure 8: where K = 32 slots look when translating",
        lambda scale: FIGURE8_INTRODUCTION,
        make_figure8,
        Study.finished,
        sources,
        draw_sample(FIGURE8_LENGTH),
    ),
}

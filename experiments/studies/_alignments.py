"""The common part of the figures of alignments, Figures 6 to 8 of Britz et al. (2017)."""

from collections.abc import Sequence
from pathlib import Path

from experiments.reproduction.jobs import run_command
from experiments.reproduction.pages import Draw, MissingRun
from experiments.reproduction.results import Result, Results
from experiments.reproduction.rows import Row
from experiments.reproduction.study import Study
from seq2seq_memattn.text.files import read_lines

MAX_SLOTS = 8  # more would be drawn too small; the title counts the others

WHAT = """
The figures show the product of the decoder's and the encoder's scores, beta and alpha (section 5),
along the best hypothesis of a beam search with beam size 10: for each of the most used slots, and
summed over all slots. Source tokens run downwards and target tokens to the right, end tokens
included. The sample is the first line of the validation set with the number of symbols or words
named above or, if there is none, with the next smaller number.
""".strip()


def draw_sample(num_tokens: int) -> Draw:
    """Returns a `draw` that draws alignments of a sample, by slot and combined.

    It draws the rows with results, except rows whose weights another row starts from. If a run is
    not here, its existing figures stay as they are. If there are no figures either, `draw` raises a
    `MissingRun` that says what is needed.
    """

    def draw(study: Study, results: Results, stem: Path) -> dict[str, str]:
        starts = {row.init_from for row in study.rows}
        finished = {result["name"]: result for result in results}
        titles: dict[str, str] = {}
        for row in study.rows:
            if row.name in finished and row.name not in starts:
                titles |= _draw_row(study, row, finished[row.name], num_tokens, stem)
        return titles

    return draw


def _draw_row(
    study: Study, row: Row, result: Result, num_tokens: int, stem: Path
) -> dict[str, str]:
    """Draws both figures of a row, if its run is here; returns their titles by name."""
    run_dir = study.runs_dir / row.name
    paths = [stem.with_name(f"{stem.name}_{row.name}{end}") for end in ("_slots", "")]
    source = study.data_dir / row.data.folder / "valid.source.txt"
    if source.exists() and study.has_run_of(result):
        run_command(draw_arguments(run_dir, source, num_tokens, *paths))
    elif not all(path.with_suffix(".png").exists() for path in paths):
        raise MissingRun(
            f"{run_dir}: expected the run, and {source}; to make both again, remove "
            f"{study.result_path(row)}"
        )
    shown = (f"The slots used most, {row.label}", f"All slots together, {row.label}")
    names = [path.name.removeprefix(f"{stem.name}_") for path in paths]
    return dict(zip(names, shown, strict=True))


def draw_arguments(
    run_dir: Path, source: Path, num_tokens: int, slots: Path, combined: Path
) -> list[str]:
    """The command that draws a sample, without `python -m`."""
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
    """The number, from 1, of the first of the longest lines with at most `num_tokens` tokens."""
    lengths = [len(line.split()) for line in lines]
    return 1 + lengths.index(max(length for length in lengths if length <= num_tokens))

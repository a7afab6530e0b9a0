"""Figures of measured times."""

from pathlib import Path

from experiments.benchmarks.timed_work import OF_DATA
from experiments.reproduction.results import Result, Results, grouped


def draw_times(rows: Results, path: Path, paper: Results = ()) -> list[Path]:
    """Draws time by source length, one figure per mode, number format and graph.

    Args:
        rows: rows of `experiments.speed`.
        path: start of the files' names.
        paper: records of a paper's times, see `plots.time_by_length`. Its ratios are drawn dashed
            in the figure for sources of 0 to L tokens.

    Returns:
        The files written.
    """
    import seq2seq_memattn.plots as plots

    drawn = []
    kinds = grouped(
        [row for row in rows if row["mode"] not in OF_DATA],
        lambda row: (row["mode"], row["precision"], row.get("jit_compile")),
    )
    for (mode, precision, is_compiled), those in kinds.items():
        is_compared = mode == "uniform" and any(row["attention"] == "bahdanau" for row in those)
        doing = "Training on" if mode == "train" else "Decoding"
        lengths = {"exact": "exactly L", "normal": "L on average"}.get(mode, "0 to L")
        graph = "_plain" if is_compiled is False else ""
        figure = plots.time_by_length(
            those,
            paper if is_compared else [],
            title=f"{doing} {those[0]['num_sentences']:,} sentences of {lengths} tokens; "
            f"{_conditions(those[0])}",
        )
        drawn += plots.save(figure, path.with_name(f"{path.name}_{mode}_{precision}{graph}"))
    return drawn


def draw_step_times(rows: Results, path: Path) -> list[Path]:
    """Draws the time of a decoder step by source length.

    Args:
        rows: rows of `experiments.speed` with one mode and number format, from one machine.
        path: the files' path without the extension.

    Returns:
        The files written.
    """
    import seq2seq_memattn.plots as plots

    row = rows[0]
    title = f"One decoder step for sources of exactly L tokens; {_conditions(row)}"
    return plots.save(plots.step_time_by_length(rows, title), path)


def _conditions(row: Result) -> str:
    """Batch size, beam, units and hardware of a time, for titles."""
    beam = f"beam of {row['beam_size']}, " if row["mode"] != "train" else ""
    where = f"; {row['hardware']}" if "hardware" in row else ""
    return f"batches of {row['batch_size']}, {beam}{row['units']} units{where}"

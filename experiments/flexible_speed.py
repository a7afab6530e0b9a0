"""Table 3 of Shu and Nakayama (2017): decoding along references, with windows and without."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.flexible_tables import CORPORA, THRESHOLD, by_corpus, finished_chosen, make_table2
from experiments.jobs import run_command
from experiments.records import read_json
from experiments.study import Scale, Study

COMPARED = ("global", "flexible_tuned")
PAPER = {"luong_concat": 751, "flexible": 677}  # milliseconds on a core of a CPU
JOINED = (1, 2, 4)  # lines that are one sentence, for the length from which windows pay
BATCH_SIZES = (1, 32)
TIMES = "decoding"  # of a result
HEADER = (
    "| row | τ | paper, ms | source tokens | window | batch | ms per sentence | of global |\n|"
    + "---|" * 8
)


def introduction(scale: Scale) -> str:
    """What the page says before its table."""
    del scale
    return (
        "Milliseconds for decoding a sentence of the test set along its reference, one hypothesis, "
        "one thread, in TensorFlow's plain graph, which alone scores nothing outside of a window; "
        "medians of runs in turns. Longer sources are lines of the set joined."
    )


def make_table3(scale: Scale, names: Sequence[str], work_dir: Path, results_dir: Path) -> Study:
    """Rows of Table 2, whose runs and results they are.

    Args:
        scale, names, work_dir, results_dir: as in `table1.make_study`.

    Raises:
        ValueError: for a name that is no row.
    """
    of = make_table2(scale, names, work_dir, results_dir)
    compared = [row.name for row in of.rows if row.name.endswith(COMPARED)]
    return dataclasses.replace(of, chosen=of.chosen if names else compared)


def extend(of: Study) -> list[dict[str, Any]]:
    """The finished results with their times, which are measured unless they are there."""
    results = finished_chosen(of)
    rows = {row.name: row for row in of.rows}
    for name, members in by_corpus(results).items():
        folder, scale = of.results_dir.parent.parent / "flexible_table3", of.results_dir.name
        path = folder / scale / f"{name}.json"
        data = of.data_dir / rows[members[0]["name"]].data.folder
        test = CORPORA[name].test
        runs = [_named(of, result) for result in members]
        if not path.exists() and data.exists():
            run_command(
                [
                    "experiments.forced_speed",
                    f"--runs={','.join(runs)}",
                    f"--source={data / test}.source.txt",
                    f"--reference={data / test}.target.txt",
                    f"--joined={','.join(map(str, JOINED))}",
                    f"--batch_sizes={','.join(map(str, BATCH_SIZES))}",
                    f"--output={path}",
                ]
            )
        measured = read_json(path)["rows"]
        for result in members:
            result[TIMES] = [row for row in measured if row["run_dir"].endswith(result["name"])]
    return results


def _named(of: Study, result: dict[str, Any]) -> str:
    """A run with its threshold, as `forced_speed` takes it."""
    run_dir, threshold = of.runs_dir / result["name"], result.get(THRESHOLD)
    return f"{run_dir}:{threshold}" if threshold else str(run_dir)


def tables(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The table, by suffix of file."""
    parts = []
    for name, members in by_corpus(results).items():
        reference = {_kind(row): row["milliseconds"] for row in members[0][TIMES]}
        lines = [
            f"| {' | '.join(_cells(result, row, reference[_kind(row)]))} |"
            for result in members
            for row in result[TIMES]
        ]
        parts.append("\n".join([f"## {CORPORA[name].title}", "", HEADER, *lines]))
    return {".md": "\n\n".join(parts) + "\n"}


def _kind(row: dict[str, Any]) -> tuple[int, int]:
    return row["joined"], row["batch_size"]


def _cells(result: dict[str, Any], row: dict[str, Any], reference: float) -> list[str]:
    as_theirs = _kind(row) == (1, 1)
    return [
        result["label"],
        "-" if row["threshold"] is None else f"{row['threshold']}",
        str(PAPER[row["attention"]]) if as_theirs else "-",
        f"{row['source_tokens']:.1f}",
        f"{row['window']:.1f}",
        str(row["batch_size"]),
        f"{row['milliseconds']:.1f}",
        f"{row['milliseconds'] / reference:.2f}",
    ]

"""Flexible Attention, Table 3: decoding speed.

Shu and Nakayama (2017): the time of decoding along given references, with and without
windows, by models of its Table 2.
"""

from experiments.reproduction.jobs import run_command
from experiments.reproduction.pages import markdown_table
from experiments.reproduction.results import Result, Results, read_json
from experiments.reproduction.rows import Scale
from experiments.reproduction.study import Study
from experiments.studies import flexible_table2
from experiments.studies._flexible import (
    CORPORA,
    THRESHOLD,
    by_corpus,
    chosen_with_thresholds,
)

RUNS_OF = "flexible_table2"
COMPARED = ("global", "flexible_tuned")
PAPER = {"luong_concat": 751, "flexible": 677}  # milliseconds on a core of a CPU
JOINED = (1, 2, 4)  # lines that are one sentence, for the length from which windows pay
BATCH_SIZES = (1, 32)
TIMES = "decoding"  # of a result
HEADER = (
    *("row", "τ", "paper, ms", "source tokens", "window", "batch", "ms per sentence"),
    "of global",
)
INTRODUCTION = """
Milliseconds for decoding a sentence of the test set along its reference, one hypothesis, one
thread, in TensorFlow's plain graph, which alone scores nothing outside of a window; medians of runs
in turns. Longer sources are lines of the set joined.
"""

rows = flexible_table2.rows


def chosen(scale: Scale) -> list[str]:
    """The two that the paper compares."""
    return [row.name for row in rows(scale) if row.name.endswith(COMPARED)]


def results(study: Study) -> list[Result]:
    """The finished results with their times, which are measured unless they are there."""
    finished = chosen_with_thresholds(study)
    folders = {row.name: row.data.folder for row in study.rows}
    for name, members in by_corpus(finished).items():
        folder = study.results_dir.parent.parent / "flexible_table3" / study.scale
        path, data = folder / f"{name}.json", study.data_dir / folders[members[0]["name"]]
        test = CORPORA[name].test
        if not path.exists() and data.exists():
            run_command(
                [
                    "experiments.benchmarks.along_references",
                    f"--runs={','.join(_named(study, result) for result in members)}",
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
    return finished


def _named(study: Study, result: Result) -> str:
    """A run with its threshold, as `along_references` takes it."""
    run_dir, threshold = study.runs_dir / result["name"], result.get(THRESHOLD)
    return f"{run_dir}:{threshold}" if threshold else str(run_dir)


def tables(found: Results) -> dict[str, str]:
    """The table, by suffix of file."""
    parts = []
    for name, members in by_corpus(found).items():
        reference = {_kind(row): row["milliseconds"] for row in members[0][TIMES]}
        lines = [
            _cells(result, row, reference[_kind(row)])
            for result in members
            for row in result[TIMES]
        ]
        parts.append(f"## {CORPORA[name].title}\n\n{markdown_table(HEADER, lines)}")
    return {".md": "\n\n".join(parts) + "\n"}


def _kind(row: Result) -> tuple[int, int]:
    return row["joined"], row["batch_size"]


def _cells(result: Result, row: Result, reference: float) -> list[str]:
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

"""Flexible Attention, Table 3: decoding speed.

Shu and Nakayama (2017): the time of forced decoding of references, with and without windows, for
models of their Table 2.
"""

from pathlib import Path

from experiments.reproduction.claims import Claim, from_cases, made_by, several
from experiments.reproduction.jobs import run_command
from experiments.reproduction.pages import commit_in_words, markdown_table
from experiments.reproduction.results import Result, Results, read_json, training_of, write_json
from experiments.reproduction.rows import Scale
from experiments.reproduction.study import Study
from experiments.reproduction.timings import is_of_command
from experiments.studies import flexible_table2
from experiments.studies._flexible import (
    CORPORA,
    THRESHOLD,
    by_corpus,
    chosen_with_thresholds,
)
from seq2seq_memattn.notes import print_note

RUNS_OF = "flexible_table2"
COMPARED = ("global", "flexible", "flexible_tuned")
PAPER = {"luong_concat": 751, "flexible": 677}  # milliseconds on one CPU core
JOINED = (1, 2, 4)  # lines joined into one, to find the length from which windows pay off
BATCH_SIZES = (1, 32)
TIMES = "decoding"  # key of a result
HEADER = (
    *("row", "τ", "source tokens", "window", "batch, at most", "ms per source"),
    *("least to most", "of global"),
)
INTRODUCTION = """
Is decoding faster if only a window of the source is scored? The table has milliseconds per source,
with one hypothesis and one thread. Sources are the first 100 lines of the test set, as they are,
and joined to 50 of two lines and 25 of four. Decoding is forced: each step is fed the
reference's previous token. It runs in TensorFlow's plain graph, because only this graph skips
positions outside the window. Without a threshold ("-" in the column τ), all positions are scored.
Times are medians of several runs, with the models taking turns. In the paper, on one CPU core,
global attention takes 751 ms per sentence, and fine-tuned flexible attention with τ = 1.0 takes 677
ms.
"""

rows = flexible_table2.rows


def chosen(scale: Scale) -> list[str]:
    """Global attention, and flexible attention before and after fine-tuning."""
    return [row.name for row in rows(scale) if row.name.endswith(COMPARED)]


def run(study: Study) -> Results:
    """Trains the rows; then times forced decoding with the rows of each corpus, in turns."""
    if missing := set(chosen(study.scale)) - set(study.names()):
        raise ValueError(f"--rows: timed in turns with {', '.join(sorted(missing))}; add them")
    study.run()
    folders = {row.name: row.data.folder for row in study.rows}
    for name, members in by_corpus(chosen_with_thresholds(study)).items():
        data, test = study.data_dir / folders[members[0]["name"]], CORPORA[name].test
        command = [
            "experiments.benchmarks.along_references",
            f"--runs={','.join(_named(study, result) for result in members)}",
            f"--source={data / test}.source.txt",
            f"--reference={data / test}.target.txt",
            f"--joined={','.join(map(str, JOINED))}",
            f"--batch_sizes={','.join(map(str, BATCH_SIZES))}",
            f"--output={_path(study, name)}",
        ]
        trainings = list(map(training_of, members))
        path = _path(study, name)
        if not is_of_command(path, command) or read_json(path).get("timed") != trainings:
            if not all(map(study.has_run_of, members)):
                print_note(f"{name}: not timed again, because not all of its runs are here")
                continue
            run_command(command)
            write_json(path, {**read_json(path), "timed": trainings})
    return results(study)


def results(study: Study) -> list[Result]:
    """The finished results that have times, with these times."""
    found = []
    for name, members in by_corpus(chosen_with_thresholds(study)).items():
        measured = read_json(path) if (path := _path(study, name)).exists() else {}
        if measured.get("timed") == list(map(training_of, members)):
            made = f"{measured['hardware']} (commit {commit_in_words(measured['commit'])})"
            for result in members:
                times = [row for row in measured["rows"] if row["run_dir"].endswith(result["name"])]
                found.append({**result, TIMES: times, "timed_on": made})
    return found


def _path(study: Study, corpus: str) -> Path:
    folder = study.results_dir.parent.parent / "flexible_table3" / study.scale
    return folder / f"{corpus}.json"


def _named(study: Study, result: Result) -> str:
    """A run with its threshold, in the form that `along_references` takes."""
    run_dir, threshold = study.runs_dir / result["name"], result.get(THRESHOLD)
    return f"{run_dir}:{threshold}" if threshold else str(run_dir)


def claims(found: Results) -> list[Claim]:
    """Flexible attention decodes faster than global attention."""
    global_ms, flexible_ms = PAPER["luong_concat"], PAPER["flexible"]
    claim = Claim(
        "flexible decodes characters faster than global, CPU",
        f"{flexible_ms} of {global_ms} ms, {flexible_ms / global_ms:.2f}",
        "Ratios at one, two and four joined sentences, decoded singly. Reproduced if flexible is "
        "faster than global at two, whose length is nearest to the paper's 145 characters; "
        "otherwise not. Of the flexible rows, that with the smallest window counts; in the paper, "
        "the fine-tuned one.",
    )
    on_gpu = Claim(
        "flexible decodes characters slower than global, GPU",
        "136 of 123 ms, 1.11",
        "Reproduced if flexible decodes single sentences slower than global, otherwise not.",
    )
    if len(found) < len(COMPARED):
        return [claim.incomplete(len(found), len(COMPARED)), on_gpu]
    of_global, *flexible = (one[TIMES] for one in found)
    narrowest = min(flexible, key=lambda rows: rows[0]["window"])
    reference, ours = (
        {_kind(row): row["milliseconds"] for row in rows} for rows in (of_global, narrowest)
    )
    ratios = [ours[joined, 1] / reference[joined, 1] for joined in JOINED]
    verdict = from_cases([ours[2, 1] < reference[2, 1]])
    return [claim.judged(several(ratios, ".2f"), verdict, made_by(found)), on_gpu]


def tables(found: Results) -> str:
    """The table."""
    parts = []
    for name, members in by_corpus(found).items():
        reference = {_kind(row): row["milliseconds"] for row in members[0][TIMES]}
        lines = [
            _cells(result, row, reference[_kind(row)])
            for result in members
            for row in result[TIMES]
        ]
        parts.append(f"## {CORPORA[name].title}\n\n{markdown_table(HEADER, lines)}")
        parts.append(f"Timed on: {members[0]['timed_on']}.")
    return "\n\n".join(parts) + "\n"


def _kind(row: Result) -> tuple[int, int]:
    return row["joined"], row["batch_size"]


def _cells(result: Result, row: Result, reference: float) -> list[str]:
    return [
        result["label"],
        "-" if row["threshold"] is None else f"{row['threshold']}",
        f"{row['source_tokens']:.1f}",
        f"{row['window']:.1f}",
        str(row["batch_size"]),
        f"{row['milliseconds']:.1f}",
        f"{min(row['all_milliseconds']):.1f} to {max(row['all_milliseconds']):.1f}",
        f"{row['milliseconds'] / reference:.2f}",
    ]

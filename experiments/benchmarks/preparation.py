"""Measures preparing text and reading batches: python -m experiments.benchmarks.preparation.

For each number in `--lines`, the benchmark makes a corpus of that many pairs by repeating and
varying the given corpus, and prepares it with `data_prep.parallel_text`. It then reads batches as
training does, without a model. It prints one line of figures for each corpus, and writes all
figures to `--output`.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.benchmarks.process_memory import process_tree_mib
from experiments.benchmarks.varied_corpus import write_varied
from experiments.reproduction.results import provenance, write_json
from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.compute.hardware import processor
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.text.files import check_output, read_lines

VALID_PAIRS = 1000
POLL_SECONDS = 0.1
STAGES = ("counts", "vocabularies")  # each writes a file when it ends; encoding follows
BATCH_SIZE = 64


def measure_preparation(
    sides: Sequence[Sequence[str]], num_pairs: int, vocab_size: int, folder: Path
) -> dict[str, Any]:
    """Prepares a corpus of `num_pairs` pairs; returns its figures."""
    folder.mkdir(parents=True)
    files: dict[str, Path] = {}
    for split, count in (("train", num_pairs), ("valid", VALID_PAIRS)):
        paths = [folder / f"{split}.{side}" for side in ("source", "target")]
        write_varied(sides, count, paths, seed=num_pairs + count)
        files |= {f"{split}_source": paths[0], f"{split}_target": paths[1]}
    data = folder / "data"
    command = [
        *(sys.executable, "-m", "data_prep.parallel_text", f"--output_dir={data}"),
        f"--vocab_size={vocab_size}",
        *(f"--{name}={path}" for name, path in files.items()),
    ]
    print_note(f"preparing {num_pairs:,} pairs")
    started = time.perf_counter()
    ends: dict[str, float] = {}
    peak = 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            while process.poll() is None:
                peak = max(peak, process_tree_mib(process.pid))
                for stage in STAGES:
                    if stage not in ends and any(folder.glob(f"**/{stage}.stage")):
                        ends[stage] = time.perf_counter() - started
                time.sleep(POLL_SECONDS)
        except BaseException:
            process.terminate()
            raise
        seconds = time.perf_counter() - started
        output, _ = process.communicate()
    if process.returncode:
        raise ValueError(f"{' '.join(command)}: ended with {process.returncode}")
    if len(ends) < len(STAGES):
        raise ValueError(f"--lines: expected enough to time each stage, got {num_pairs}")
    figures = json.loads(output.splitlines()[-1])
    reading, vocabulary = ends["counts"], ends["vocabularies"] - ends["counts"]
    return {
        "pairs": num_pairs,
        "words": _mean_words(files["train_source"]),
        "seconds": round(seconds, 1),
        "reading_seconds": round(reading, 1),
        "vocabulary_seconds": round(vocabulary, 1),
        "encoding_seconds": round(seconds - ends["vocabularies"], 1),
        "pairs_per_second": round(num_pairs / (seconds - vocabulary)),
        "peak_memory_mib": round(peak),
        **{name: value for name, value in figures.items() if name.startswith("left_out")},
    }


def _mean_words(path: Path) -> float:
    """The mean number of words in a line, over at most 100,000 lines."""
    with open(path, "rb") as stream:
        counts = [line.count(b" ") + 1 for line, _ in zip(stream, range(100_000), strict=False)]
    return round(sum(counts) / len(counts), 1)


def measure_input(data: Path, seconds: float) -> dict[str, Any]:
    """Reads batches as training does, for some seconds; returns target tokens per second."""
    from seq2seq_memattn.data.splits import SplitData

    batches = iter(SplitData(data, "train", BATCH_SIZE).tf_dataset())
    np.asarray(next(batches)["source"])  # waits until the first group of shards is read
    tokens, started = 0, time.perf_counter()
    while (passed := time.perf_counter() - started) < seconds:
        tokens += int(np.count_nonzero(np.asarray(next(batches)["target_outputs"])))
    return {"input_target_tokens_per_second": round(tokens / passed)}


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.items("source", None, "files of a small corpus, source side", required=True)
    flags.items("target", None, "files of the same corpus, target side", required=True)
    flags.items("lines", ["1000000", "4000000"], "numbers of pairs to prepare")
    flags.integer("vocab_size", 16_000, "ids of the vocabulary", lower_bound=5)
    flags.number("input_seconds", 20.0, "how many seconds to read batches for")
    flags.string("work_dir", "runs/preparation", "folder for the corpora, removed afterwards")
    flags.string("output", None, "JSON file for the figures")


def main(arguments: cli.Arguments) -> None:
    """Measures the corpora that the flags describe."""
    sides = [
        [line for file in files for line in read_lines(file)]
        for files in (arguments.source, arguments.target)
    ]
    counts = [len(side) for side in sides]
    if counts[0] != counts[1]:
        raise ValueError(f"expected as many sources as targets; got {counts[0]} and {counts[1]}")
    if arguments.output:
        check_output(arguments.output)
    process_tree_mib(os.getpid())  # raises at once if memory cannot be measured
    rows = []
    for count in cli.positive_numbers("lines", arguments.lines):
        folder = Path(arguments.work_dir) / f"varied_{count}"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            row = measure_preparation(sides, count, arguments.vocab_size, folder)
            row |= measure_input(folder / "data", arguments.input_seconds)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print_note(json.dumps(row))
        rows.append(row)
        if arguments.output:
            write_json(Path(arguments.output), {**provenance(processor()), "rows": rows})
    cli.print_result({"rows": rows})


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])

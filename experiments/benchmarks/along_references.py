"""Times forced decoding of references: python -m experiments.benchmarks.along_references.

As in section 5.5 of Shu and Nakayama (2017), each step is fed the reference's previous token, not
the model's own. All runs therefore take the same steps. Times include the output layer. The steps
are those of search with one hypothesis per source, in TensorFlow's plain graph or compiled by XLA.
A run of flexible attention may be given with a threshold, as in RUN:1.0. `--joined=4` joins every
four lines into one, to time longer sources.
"""

import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.reproduction.results import portable, report
from seq2seq_memattn.commands.shared import cli, run_flags
from seq2seq_memattn.compute.hardware import use_threads
from seq2seq_memattn.data.batching import Batch, make_batch
from seq2seq_memattn.notes import print_note


class Lines(NamedTuple):
    """The pairs to decode, as ids without end tokens.

    Fields:
        sources, targets: int32 arrays [length].
    """

    sources: list[Any]
    targets: list[Any]


class Timed(NamedTuple):
    """One row to measure.

    Fields:
        row: the description of the row.
        decoder: decodes a batch.
        batches: the batches to decode.
        turns: seconds per sentence in each turn.
    """

    row: dict[str, Any]
    decoder: Any
    batches: list[Batch]
    turns: list[float]


def join(lines: Sequence[str], count: int) -> list[str]:
    """Joins every `count` lines into one; drops the last lines if fewer than `count` are left."""
    return [" ".join(lines[i : i + count]) for i in range(0, len(lines) - count + 1, count)]


def make_batches(lines: Lines, batch_size: int) -> list[Batch]:
    """Makes batches of pairs with similar source lengths."""
    order = sorted(range(len(lines.sources)), key=lambda i: len(lines.sources[i]))
    groups = (order[i : i + batch_size] for i in range(0, len(order), batch_size))
    return [
        make_batch([lines.sources[i] for i in group], [lines.targets[i] for i in group])
        for group in groups
    ]


def load(name: str) -> tuple[Any, float | None]:
    """Loads a run given as RUN or RUN:THRESHOLD; returns it and its threshold, None without one."""
    from seq2seq_memattn.runs.directory import load_run

    folder, _, threshold = name.partition(":")
    try:
        value = float(threshold) if threshold else None
    except ValueError:
        raise ValueError(f"--runs: expected a number after {folder}:, got {threshold}") from None
    return load_run(Path(folder), threshold=value), value


def make_decoder(model: Any, jit_compile: bool) -> tuple[Any, Any]:
    """Makes two functions that run the decoding steps along the targets of a batch.

    Returns:
        decode: returns the log-probability of each target, float [batch].
        window_of: returns the mean number of encoder states scored per step, float [batch].
    """
    from seq2seq_memattn.compute.backend import compiled
    from seq2seq_memattn.search.prepare import folds_rows
    from seq2seq_memattn.search.prepared import PreparedModel, make_weights
    from seq2seq_memattn.search.replay import replay_attention, replay_log_probs

    folded = folds_rows(model, 1)
    weights = compiled(model, lambda: make_weights(model, folded))()

    def compiled_replay(replay: Any, jit_compile: bool) -> Any:
        def run(weights: Any, source: Any, *along: Any) -> Any:
            prepared = PreparedModel(model, folded, weights)
            return replay(prepared, *prepared.start(source, 1), *along)

        return compiled(model, run, jit_compile)

    log_probs = compiled_replay(replay_log_probs, jit_compile)
    attention = compiled_replay(replay_attention, False)

    def decode(batch: Batch) -> Any:
        targets = batch["target_outputs"][:, None]
        return np.asarray(log_probs(weights, batch["source"], targets))[:, 0]

    def window_of(batch: Batch) -> Any:
        targets = batch["target_outputs"][:, None]
        lengths = np.count_nonzero(targets, axis=2).astype(np.int32)
        return np.asarray(attention(weights, batch["source"], targets, lengths)[2])[:, 0]

    return decode, window_of


def make_rows(
    sources: Sequence[str], references: Sequence[str], arguments: cli.Arguments
) -> list[Timed]:
    """Makes the rows that the flags describe, in the order in which they are timed."""
    from seq2seq_memattn.runs.translator import encode_lines

    timed = []
    batch_sizes = cli.positive_numbers("batch_sizes", arguments.batch_sizes)
    joined = cli.positive_numbers("joined", arguments.joined)
    if max(joined) > len(sources):
        raise ValueError(f"--joined: expected at most the {len(sources)} lines; got {max(joined)}")
    for name in arguments.runs:
        run, threshold = load(name)
        print_note(f"building {name}")
        decoder, window_of = make_decoder(run.model, arguments.jit_compile)
        for count in joined:
            lines = Lines(
                encode_lines(run.source_vocabulary, join(sources, count), arguments.source),
                encode_lines(run.target_vocabulary, join(references, count), arguments.reference),
            )
            windows = [window_of(batch) for batch in make_batches(lines, 100)]
            for batch_size in batch_sizes:
                row = {
                    "run_dir": portable(name.partition(":")[0]),
                    "attention": run.model.config.attention,
                    "threshold": threshold,
                    "joined": count,
                    "batch_size": batch_size,
                    "jit_compile": arguments.jit_compile,
                    "threads": arguments.threads,
                    "sentences": len(lines.sources),
                    "source_tokens": float(np.mean([len(ids) + 1 for ids in lines.sources])),
                    "target_tokens": float(np.mean([len(ids) + 1 for ids in lines.targets])),
                    "window": float(np.mean(np.concatenate(windows))),
                }
                timed.append(Timed(row, decoder, make_batches(lines, batch_size), []))
    return timed


def measure(timed: Sequence[Timed], repeats: int) -> list[dict[str, Any]]:
    """Times rows in turns; returns the rows with milliseconds per sentence."""
    for turn in range(repeats + 1):
        for one in timed:
            started = time.perf_counter()
            for batch in one.batches:
                one.decoder(batch)
            if turn:  # turn 0 compiles and warms up
                one.turns.append((time.perf_counter() - started) / one.row["sentences"])
        print_note(f"turn {turn} of {repeats}")
    return [
        {
            **one.row,
            "milliseconds": round(1000 * statistics.median(one.turns), 3),
            "all_milliseconds": [round(1000 * seconds, 3) for seconds in one.turns],
        }
        for one in timed
    ]


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.items(
        "runs",
        None,
        "run directories; RUN:1.0 decodes with threshold 1.0, for flexible attention",
        required=True,
    )
    flags.string("source", None, "sources, one per line", required=True)
    flags.string("reference", None, "references, one per line", required=True)
    flags.integer("num_sentences", 100, "lines to decode", lower_bound=1)
    flags.items("batch_sizes", ["1", "32"], "sentences decoded at a time")
    flags.items("joined", ["1"], "numbers of lines to join into one sentence")
    flags.boolean("jit_compile", False, "let XLA compile the steps")
    flags.integer("threads", 1, "threads of TensorFlow", lower_bound=1)
    flags.integer("repeats", 5, "measured turns", lower_bound=1)
    flags.string("output", None, "JSON file for the rows")


def main(arguments: cli.Arguments) -> None:
    """Measures the runs that the flags name."""
    sources, references = run_flags.read_pair(arguments.source, arguments.reference)
    count = arguments.num_sentences
    use_threads(arguments.threads)
    rows = measure(make_rows(sources[:count], references[:count], arguments), arguments.repeats)
    report(rows, arguments.output)


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])

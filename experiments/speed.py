"""Measures speed: python -m experiments.speed --lengths=20,50 --attentions=none,k_memory:64.

Modes: "exact" decodes sources of exactly L tokens. "uniform" decodes sources of 0..L tokens, and
"normal" sources with normally distributed lengths (mean L, standard deviation `--deviation`,
clipped to 1..100); both sort sources by length before batching. "train" times training updates.
Weights are untrained, so every hypothesis is forced to the length of its source; the rows say so.
With `--data_dir` and `--split`, the sources come from a data
directory, and hypotheses are forced to the lengths of its targets (mode "data"). With `--run_dir`
and `--source`, a trained run decodes the lines of a file (mode "run").

Times leave out loading and building; compilation time is reported separately. Rows of one mode are
timed in turns, so that a change in the machine's speed affects all of them equally.
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from experiments.benchmarks.process_memory import work_peak_mib
from experiments.benchmarks.time_plots import draw_times
from experiments.benchmarks.timed_work import (
    MODES,
    Setting,
    Work,
    data_sizes,
    make_work,
)
from experiments.reproduction.results import provenance, write_json
from seq2seq_memattn.attention.registry import ATTENTION_NAMES
from seq2seq_memattn.commands.shared import cli, run_flags
from seq2seq_memattn.compute.hardware import hardware, num_cores, use_threads
from seq2seq_memattn.config import DecodingPrecision, Precision
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.text.files import check_output

GRAPHS = ("xla", "plain")
FOLDED = ("auto", "yes", "no")
# Flags that all settings share, as fields of the same name.
SHARED = (
    *("batch_size", "num_sentences", "beam_size", "units", "vocab_size", "deviation"),
    *("input_feeding", "run_dir", "source", "data_dir", "split"),
)


def measure(settings: Sequence[Setting], repeats: int) -> list[dict[str, Any]]:
    """Times settings in turns; returns one row for each setting."""
    works = []
    for setting in settings:
        print_note(f"building {setting.mode} L={setting.length} {setting.attention}")
        works.append(make_work(setting))
    timed: list[list[_Turn]] = [[] for _ in settings]
    for turn in range(repeats + 1):
        for work, turns in zip(works, timed, strict=True):
            done = [_timed(batch) for batch in work.batches]
            encoding = _timed(work.encode)[1] if work.encode else 0.0
            tokens, seconds = sum(count for count, _ in done), [taken for _, taken in done]
            turns.append(_Turn(tokens, seconds, encoding))
        print_note(f"turn {turn} of {repeats}")
    return [_row(*of) for of in zip(settings, works, timed, strict=True)]


class _Turn(NamedTuple):
    """The times of a setting in one turn."""

    tokens: int
    batch_seconds: list[float]
    encoding: float

    @property
    def seconds(self) -> float:
        return sum(self.batch_seconds)


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def _row(setting: Setting, work: Work, turns: Sequence[_Turn]) -> dict[str, Any]:
    warm_up, *turns = turns
    seconds = statistics.median(turn.seconds for turn in turns)
    weights = {"run": "trained", "train": "untrained"}
    row = {
        **setting.described(),
        "weights": weights.get(setting.mode, "untrained, lengths forced"),
        "seconds": round(seconds, 4),
        "all_seconds": [round(turn.seconds, 4) for turn in turns],
        "target_tokens": turns[0].tokens,
        "target_tokens_per_second": round(turns[0].tokens / seconds, 1),
        # The extra time of the first turn.
        "compile_seconds": round(max(0.0, warm_up.seconds - seconds), 2),
    }
    if setting.batch_size == 1 and setting.mode != "run":  # a run is timed as a whole
        each = [1000 * taken for turn in turns for taken in turn.batch_seconds]
        row["p50_ms"], row["p95_ms"] = (round(float(np.percentile(each, q)), 2) for q in (50, 95))
    if work.encode:
        steps_seconds = statistics.median(turn.seconds - turn.encoding for turn in turns)
        row["encoding_seconds"] = round(statistics.median(turn.encoding for turn in turns), 4)
        row["steps_seconds"] = round(steps_seconds, 4)
        row["ms_per_step"] = round(1000 * steps_seconds / work.num_steps, 4)
    return row


def _measured(settings: Sequence[Setting], options: Any) -> list[dict[str, Any]]:
    """The rows of settings, with the further measurements that the flags ask for."""
    peaks = []
    for setting in settings if options.memory else ():
        print_note(f"memory of {setting.mode} L={setting.length} {setting.attention}")
        peaks.append(work_peak_mib(setting))
    if options.parts:
        from experiments.benchmarks.step_parts import step_parts
    rows = measure(settings, options.repeats)
    for row in rows:
        row["threads"] = options.threads or num_cores()
    for row, setting in zip(rows, settings if options.parts else (), strict=False):
        row["parts_ms"] = step_parts(setting)
    for row, peak in zip(rows, peaks, strict=False):
        row["peak_memory_mib"] = round(peak, 1)
    return rows


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.group("What to measure")
    flags.items("lengths", ["20", "50", "100", "200"], "source lengths L, in tokens")
    flags.items(
        "attentions",
        ["none", "k_memory:64", "bahdanau"],
        f"attentions to time in turns, one or more of {', '.join(ATTENTION_NAMES)}",
    )
    flags.items("modes", ["exact", "uniform"], f"what to time: one or more of {', '.join(MODES)}")
    flags.items(
        "precisions", ["float32"], "number formats to time in turns; see `memattn translate --help`"
    )
    flags.integer("beam_size", 10, "hypotheses kept per source", lower_bound=1)
    flags.integer("batch_size", 128, "sentences at a time", lower_bound=1)
    flags.integer("num_sentences", 1000, "sentences decoded or trained on", lower_bound=1)
    flags.integer("repeats", 3, "timed turns, after one warm-up turn", lower_bound=1)
    flags.integer("units", 256, "width of all layers", lower_bound=1)
    flags.integer("vocab_size", 20, "symbols, without the special ones", lower_bound=1)
    flags.number(
        "deviation",
        15.0,
        "with --modes=normal: standard deviation of the source lengths, in tokens",
        lower_bound=0.0,
    )
    flags.boolean("input_feeding", True, "feed the context into the next step")
    flags.items(
        "graphs", ["xla"], f"graphs of the decoding steps to time in turns: {' and '.join(GRAPHS)}"
    )
    flags.items(
        "folded",
        ["auto"],
        "whether to apply the linear maps of the context to the memory's rows, once per source; "
        f"one or more of {', '.join(FOLDED)} to time in turns",
    )
    flags.integer("threads", None, "threads of TensorFlow; by default one per core", lower_bound=1)
    flags.boolean("parts", False, "also time the parts of a decoding step")
    flags.boolean("memory", False, "add the peak memory of each row's work")
    flags.group("Trained models and real text")
    flags.string("run_dir", None, "decode with this run instead of untrained models")
    flags.string("source", None, "file of sentences that the run decodes")
    flags.string("data_dir", None, "decode the sources of this data directory")
    flags.string("split", None, "split of --data_dir to decode, such as valid")
    flags.group("Output")
    flags.string("output", None, "JSON file for the rows")
    flags.string("figure", None, "draw time by length, to files whose names begin with this")


def main(arguments: cli.Arguments) -> None:
    """Measures the settings that the flags describe."""
    groups = _settings(arguments)
    if arguments.output:
        Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
        check_output(arguments.output)
    if arguments.threads:
        use_threads(arguments.threads)
    run_flags.report_slow_products(*arguments.precisions)
    rows = []
    for settings in groups:
        rows += _measured(settings, arguments)
        if arguments.output:
            write_json(Path(arguments.output), {**provenance(hardware()), "rows": rows})
    cli.print_result({"hardware": hardware(), "rows": rows})
    if arguments.figure:
        for drawn in draw_times(rows, Path(arguments.figure)):
            print_note(f"figure: {drawn}")


def _check(options: Any) -> None:
    """Raises ValueError for flags that do not go together."""
    for mode in options.modes:
        if mode not in MODES:
            raise ValueError(f"--modes: expected some of {', '.join(MODES)}; got {mode!r}")
    if bool(options.run_dir) != bool(options.source):
        raise ValueError("--run_dir and --source: expected both or neither")
    made_up = ("modes", "lengths", "vocab_size")
    for flag, names in {
        "run_dir": (*made_up, "attentions", "units", "input_feeding", "folded"),
        "data_dir": made_up,
    }.items():
        for name in names:
            if getattr(options, flag) and name in options.given:
                raise ValueError(f"--{name}: has no effect with --{flag}, so leave it out")
    if bool(options.data_dir) != bool(options.split) or (options.data_dir and options.run_dir):
        raise ValueError("--data_dir and --split: expected both or neither, and not with --run_dir")
    precisions = get_args(Precision if "train" in options.modes else DecodingPrecision)
    for name, known in (("precisions", precisions), ("graphs", GRAPHS), ("folded", FOLDED)):
        given = getattr(options, name)
        if set(given) - set(known):
            raise ValueError(f"--{name}: expected some of {', '.join(known)}; got {given}")
    if options.figure and Path(options.figure).suffix:
        raise ValueError(f"--figure: expected a name without an ending; got {options.figure!r}")
    if options.figure and (options.run_dir or options.data_dir or len(options.folded) > 1):
        raise ValueError("--figure: expected random sources and one value of --folded")
    if options.parts and (options.run_dir or "train" in options.modes):
        raise ValueError("--parts: expected decoding by untrained models")


def _settings(options: Any) -> list[list[Setting]]:
    """The settings that the flags describe, in groups that are timed in turns."""
    _check(options)
    lengths = cli.positive_numbers("lengths", options.lengths)
    given = {name: getattr(options, name) for name in SHARED}
    shared: dict[str, Any] = {name: "" if value is None else value for name, value in given.items()}
    modes, attentions = options.modes, options.attentions
    if options.run_dir:
        from seq2seq_memattn.runs.directory import read_model_config

        attention = read_model_config(Path(options.run_dir)).attention
        modes, attentions, lengths = ["run"], [attention], [0]
    elif options.data_dir:
        shared["vocab_size"], longest = data_sizes(Path(options.data_dir), options.split)
        modes, lengths = ["data"], [longest]
    return [
        [
            Setting(
                attention,
                mode,
                length,
                precision=precision,
                jit_compile=graph == "xla",
                folded=folded,
                **shared,
            )
            for length in lengths
            for attention in attentions
            for precision in options.precisions
            # Training always runs in TensorFlow's plain graph.
            for graph in (["plain"] if mode == "train" else options.graphs)
            for folded in (["auto"] if mode == "train" else options.folded)
        ]
        for mode in modes
    ]


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])

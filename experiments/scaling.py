"""What more GPUs would bring: python -m experiments.scaling --config=NAME --output=F.json.

Times updates of a configuration's model on this machine's device, for the whole batch and for the
shares of it that 2, 8 and 64 replicas would have, and adds what a ring all-reduce of the gradients
takes between GPUs of a machine and between machines. The all-reduce comes after the backward pass,
as it does in `training/update.py`, so nothing hides it. Efficiency is the speed of n replicas over
n times that of one: for a batch of the same size shared out (strong), and for a batch of that size
on each (weak). `--speedups` are devices that many times as fast as this one: the faster they are,
the more the links count. `reproduce scaling` makes a page of it, for the configuration of Table 2.
"""

import itertools
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags

from experiments import cli
from experiments.experiment import load_experiment
from experiments.jobs import run_command
from experiments.records import provenance, read_json, write_json
from experiments.study import Scale, Study
from experiments.subject import Results, Subject, markdown_table, no_figures, without_rows
from experiments.timings import origin
from seq2seq_memattn.compute.hardware import hardware
from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.data.batching import make_batch
from seq2seq_memattn.vocabulary import NUM_SPECIAL_IDS

BYTES = 4  # of a gradient's number
SPEEDUPS = "--speedups=1,30,300"
TINY = (
    *("--embedding_dim=8", "--encoder_units=8", "--decoder_units=8", "--attention_units=8"),
    *("--batch_size=16", "--source_vocab_size=50", "--target_vocab_size=50"),
    *("--length=6", "--repeats=2"),
)
ESTIMATE = "estimate.json"


def all_reduce_seconds(num_bytes: int, num_replicas: int, options: Any) -> float:
    """A ring over all replicas: each link carries 2 (n - 1) / n of the bytes, in 2 (n - 1) steps.

    Its slowest link bounds it: that between machines, as soon as there are several.

    Args:
        num_bytes: of the gradients.
        num_replicas: n.
        options: has bandwidths in bytes a second, latencies in seconds, and the GPUs of a machine.
    """
    if num_replicas == 1:
        return 0.0
    is_inside = num_replicas <= options.gpus_per_machine
    bandwidth = 1e9 * (options.gpu_bandwidth if is_inside else options.network_bandwidth)
    latency = 1e-6 * (options.gpu_latency if is_inside else options.network_latency)
    steps = 2 * (num_replicas - 1)
    return steps / num_replicas * num_bytes / bandwidth + steps * latency


def update_seconds(
    updater: Any, rows: int, length: int, vocab_size: int, repeats: int
) -> list[float]:
    """Seconds of updates on so many sentences of a length."""
    generator = np.random.default_rng(7)
    ids = generator.integers(NUM_SPECIAL_IDS, vocab_size, (rows, length), np.int32)
    batch = make_batch(list(ids), list(ids))
    updater(batch)  # compiles
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        updater(batch)
        times.append(time.perf_counter() - started)
    return times


def main(arguments: list[str]) -> None:
    """Estimates from flags."""
    del arguments
    from seq2seq_memattn.training.make import make_parts

    options = flags.FLAGS
    replicas = [1, *cli.positive_numbers("replicas", options.replicas)]
    speedups = cli.positive_numbers("speedups", options.speedups)
    experiment = load_experiment(options.config)
    model_config = cli.overridden(experiment.model)
    training = cli.overridden(experiment.training)
    model, _, updater = make_parts(model_config, training)
    num_bytes = BYTES * sum(int(np.prod(v.shape)) for v in model.trainable_variables)
    seconds, rows = {}, []
    vocab_size = min(model_config.source_vocab_size, model_config.target_vocab_size)
    for speedup, count in itertools.product(speedups, replicas):
        share = max(1, training.batch_size // count)
        if share not in seconds:
            times = update_seconds(updater, share, options.length, vocab_size, options.repeats)
            seconds[share] = statistics.median(times)
        whole, part = seconds[training.batch_size] / speedup, seconds[share] / speedup
        # With the gradients, the loss and its tokens; before them, whether a signal came.
        exchange = sum(all_reduce_seconds(size, count, options) for size in (num_bytes, BYTES))
        rows.append(
            {
                "speedup": speedup,
                "replicas": count,
                "rows_each": share,
                "compute_seconds": part,
                "all_reduce_seconds": exchange,
                "strong_efficiency": whole / (count * (part + exchange)),
                "weak_efficiency": whole / (whole + exchange),
            }
        )
        cli.print_note(str(rows[-1]))
    assumed = (
        "gpus_per_machine",
        "gpu_bandwidth",
        "gpu_latency",
        "network_bandwidth",
        "network_latency",
        "length",
    )
    result = {
        "gradient_bytes": num_bytes,
        "batch_size": training.batch_size,
        "assumed": {name: options[name].value for name in assumed},
        "rows": rows,
    }
    if options.output:
        write_json(Path(options.output), {**provenance(hardware()), **result})
    cli.print_result(result)


def introduction(scale: Scale) -> str:
    """What the page says before its table."""
    del scale
    return (
        "What more GPUs would bring by this project's way to train, synchronous updates with one "
        "all-reduce behind the backward pass. Updates were timed on the machine below, for the "
        "whole batch and for each replica's share; for faster devices these times are divided. "
        "Strong: the same batch shared out; weak: such a batch on each replica."
    )


def extend(of: Study) -> list[dict[str, Any]]:
    """The rows of the estimate, which is made unless it is there."""
    path = of.results_dir / ESTIMATE
    if not path.exists():
        more = TINY if of.results_dir.name == "tiny" else ()
        run_command(["experiments.scaling", SPEEDUPS, *more, f"--output={path}"])
    found = read_json(path)
    made = {name: value for name, value in found.items() if name != "rows"}
    return [
        {**row, **made, "name": str(number), "seconds": row["compute_seconds"]}
        for number, row in enumerate(found["rows"])
    ]


def tables(results: Results) -> dict[str, str]:
    """The table and what it assumes, by suffix of file."""
    columns = (
        *("device's speed", "replicas", "sentences each", "compute, ms", "all-reduce, ms"),
        *("strong efficiency", "weak efficiency"),
    )
    lines = []
    for row in results:
        lines.append(
            [
                f"{row['speedup']} x",
                str(row["replicas"]),
                str(row["rows_each"]),
                f"{1000 * row['compute_seconds']:.1f}",
                f"{1000 * row['all_reduce_seconds']:.2f}",
                f"{100 * row['strong_efficiency']:.0f} %",
                f"{100 * row['weak_efficiency']:.0f} %",
            ]
        )
    made, assumed = results[0], results[0]["assumed"]
    text = (
        f"Gradients of {made['gradient_bytes'] / 1e6:.1f} MB, batches of {made['batch_size']} "
        f"sentences of {assumed['length']} tokens. Assumed: {assumed['gpus_per_machine']} GPUs a "
        f"machine, links of {assumed['gpu_bandwidth']:g} GB/s and {assumed['gpu_latency']:g} "
        f"microseconds inside, {assumed['network_bandwidth']:g} GB/s and "
        f"{assumed['network_latency']:g} microseconds between machines. Timed on "
        f"{origin(made)}"
    )
    return {".md": f"{markdown_table(columns, lines)}\n\n{text}\n"}


SUBJECTS = {
    "scaling": Subject(
        "Scaling, estimated",
        introduction,
        without_rows("scaling"),
        extend,
        tables,
        no_figures,
    )
}

if __name__ == "__main__":
    flags.DEFINE_string("config", "wmt17_en_de_k64", "experiment, a file in experiments/configs")
    flags.DEFINE_list("replicas", ["2", "8", "64"], "numbers of GPUs")
    flags.DEFINE_list("speedups", ["1"], "speed of devices, in multiples of this one's")
    flags.DEFINE_integer("length", 25, "tokens of a sentence", lower_bound=1)
    flags.DEFINE_integer("repeats", 20, "timed updates, after one that is not", lower_bound=1)
    flags.DEFINE_integer("gpus_per_machine", 8, "GPUs with fast links", lower_bound=1)
    flags.DEFINE_float("gpu_bandwidth", 300.0, "GB/s of a link between GPUs of a machine")
    flags.DEFINE_float("gpu_latency", 5.0, "microseconds of a step of the ring there")
    flags.DEFINE_float("network_bandwidth", 12.5, "GB/s of a link between machines: 100 Gbit/s")
    flags.DEFINE_float("network_latency", 20.0, "microseconds of a step of the ring there")
    flags.DEFINE_string("output", None, "JSON file")
    cli.define_override_flags(ModelConfig)
    cli.define_override_flags(TrainingConfig)
    cli.run(main)

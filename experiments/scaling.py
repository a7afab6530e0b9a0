"""What more GPUs would bring: python -m experiments.scaling --config=NAME --output=F.json.

Times updates of a configuration's model on this machine's device, for the whole batch and for the
shares of it that 2, 8 and 64 replicas would have, and adds what a ring all-reduce of the gradients
takes between GPUs of a machine and between machines. The all-reduce comes after the backward pass,
as it does in `training/update.py`, so nothing hides it. Efficiency is the speed of n replicas over
n times that of one: for a batch of the same size shared out (strong), and for a batch of that size
on each (weak).
"""

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags

from experiments import cli
from experiments.experiment import load_experiment
from experiments.records import hardware, provenance, write_json
from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.data.batching import make_batch
from seq2seq_memattn.vocabulary import NUM_SPECIAL_IDS

BYTES = 4  # of a gradient's number


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
    from seq2seq_memattn.training.parts import make_parts

    options = flags.FLAGS
    replicas = [1, *cli.positive_numbers("replicas", options.replicas)]
    experiment = load_experiment(options.config)
    model_config = cli.overridden(experiment.model)
    training = cli.overridden(experiment.training)
    model, _, updater = make_parts(model_config, training)
    num_bytes = BYTES * sum(int(np.prod(v.shape)) for v in model.trainable_variables)
    seconds, rows = {}, []
    vocab_size = min(model_config.source_vocab_size, model_config.target_vocab_size)
    for count in replicas:
        share = max(1, training.batch_size // count)
        if share not in seconds:
            times = update_seconds(updater, share, options.length, vocab_size, options.repeats)
            seconds[share] = statistics.median(times)
        whole = seconds[training.batch_size]
        exchange = all_reduce_seconds(num_bytes, count, options)
        rows.append(
            {
                "replicas": count,
                "rows_each": share,
                "compute_seconds": seconds[share],
                "all_reduce_seconds": exchange,
                "strong_efficiency": whole / (count * (seconds[share] + exchange)),
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


if __name__ == "__main__":
    flags.DEFINE_string("config", "wmt17_en_de_k64", "experiment, a file in experiments/configs")
    flags.DEFINE_list("replicas", ["2", "8", "64"], "numbers of GPUs")
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

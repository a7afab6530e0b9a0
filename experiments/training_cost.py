"""What training costs beside its updates: python -m experiments.training_cost --data_dir=D.

Trains for some minutes with the loop that `train` has, and gives the share of its time that
checkpoints, lines of the log and the progress bar took. Then takes updates in turns with a bare
loop over the same batches, which has no strategy, no accumulation, no scale of the loss, and gives
the ratio of the times.
"""

import dataclasses
import itertools
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags

from experiments import cli
from experiments.experiment import load_experiment
from experiments.records import provenance, write_json
from seq2seq_memattn.compute.hardware import hardware
from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.data.model_sizes import fit_to_data

ENDLESS = 10**9  # updates


class Timed:
    """Adds up the time that is spent in functions.

    Attributes:
        seconds, calls: by name.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}

    def watch(self, owner: Any, method: str, name: str) -> None:
        """Times a method of an object or a class, under a name."""
        original = getattr(owner, method)
        self.seconds.setdefault(name, 0.0)
        self.calls.setdefault(name, 0)

        def timed(*arguments: Any) -> Any:
            started = time.perf_counter()
            try:
                return original(*arguments)
            finally:
                self.seconds[name] += time.perf_counter() - started
                self.calls[name] += 1

        setattr(owner, method, timed)


def shares(folder: Path, data_dir: Path, model: ModelConfig, training: TrainingConfig) -> Any:
    """Shares of the time of a training of `--minutes`, by kind of work."""
    from seq2seq_memattn.training.loop import Trainer
    from seq2seq_memattn.training.reporting import Reporter

    limit = 60 * flags.FLAGS.minutes
    trainer = Trainer(folder, data_dir, model, dataclasses.replace(training, num_updates=ENDLESS))
    timed, updater = Timed(), trainer.updater
    timed.watch(trainer.folder, "save", "checkpoints")
    timed.watch(trainer, "_validate_if_due", "validation")
    for method in ("log", "advance"):
        timed.watch(Reporter, method, "log and progress bar")
    updates, started = 0, 0.0

    class Over(Exception):
        pass

    def update(*arguments: Any) -> Any:
        nonlocal updates, started
        result = updater(*arguments)
        if not started:  # the first one compiles
            started = time.perf_counter()
            timed.seconds = dict.fromkeys(timed.seconds, 0.0)
            timed.calls = dict.fromkeys(timed.calls, 0)
        updates += 1
        if time.perf_counter() - started > limit:
            raise Over
        return result

    trainer.updater = update
    try:
        trainer.run()
    except Over:
        seconds = time.perf_counter() - started
    seconds -= timed.seconds.pop("validation")
    found = {name: spent / seconds for name, spent in timed.seconds.items()}
    checkpoints = timed.calls["checkpoints"]
    if not checkpoints:
        raise ValueError("no checkpoint was written: expected fewer --checkpoint_minutes")
    return {"seconds": seconds, "updates": updates, "checkpoints": checkpoints, "shares": found}


def bare_update(model_config: ModelConfig, training: TrainingConfig) -> Callable[[Any], None]:
    """An update as a short script would have it: summed loss, mean gradient, global clip, Adam."""
    import tensorflow as tf

    from seq2seq_memattn.data.batching import batch_spec
    from seq2seq_memattn.losses import summed_cross_entropy
    from seq2seq_memattn.model import Seq2Seq
    from seq2seq_memattn.training.updates.optimizer import make_optimizer

    model = Seq2Seq(model_config)
    optimizer = make_optimizer(model, training)
    variables = model.trainable_variables

    @tf.function(input_signature=[batch_spec()], autograph=False)
    def compute(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = model(batch, training=True)
            loss, num_tokens = summed_cross_entropy(
                batch["target_outputs"], logits, training.label_smoothing
            )
            loss = loss / num_tokens
        gradients = tape.gradient(loss, [v.value for v in variables])
        return loss, tf.clip_by_global_norm(gradients, training.clip_norm)[0]

    @tf.function(jit_compile=True, autograph=False)
    def apply(gradients: Any) -> None:
        optimizer.apply(gradients, variables)

    def update(batch: Any) -> None:
        loss, gradients = compute(batch)
        apply(gradients)
        float(loss)

    return update


def ratio(data_dir: Path, model: ModelConfig, training: TrainingConfig) -> dict[str, Any]:
    """Times of the updates of `train` over those of a bare loop, in turns on the same batches."""
    from seq2seq_memattn.data.splits import open_split
    from seq2seq_memattn.training.make import make_parts

    data = open_split(data_dir, "train", training.batch_size, training.bucket_width, training.seed)
    batches = [batch for batch, _ in itertools.islice(data.numpy_batches(), 20)]
    ours = make_parts(model, training)[2]
    updates: dict[str, Any] = {"ours": ours, "bare": bare_update(model, training)}
    times: dict[str, list[float]] = {name: [] for name in updates}
    for turn in range(flags.FLAGS.repeats + 1):
        seconds = dict.fromkeys(updates, 0.0)
        for number, batch in enumerate(batches):
            # One update each, whose order changes: what slows the machine for seconds slows both.
            for name in sorted(updates, reverse=(turn + number) % 2 == 1):
                started = time.perf_counter()
                updates[name](batch)
                seconds[name] += time.perf_counter() - started
        if turn:  # the first turn compiles
            for name, spent in seconds.items():
                times[name].append(spent)
    ratios = np.divide(times["ours"], times["bare"]).tolist()
    return {"seconds": times, "ratio": statistics.median(ratios), "ratios": ratios}


def main(arguments: list[str]) -> None:
    """Measures from flags."""
    del arguments
    options = flags.FLAGS
    data_dir = Path(options.data_dir)
    experiment = load_experiment(options.config)
    model = fit_to_data(cli.overridden(experiment.model), read_manifest(data_dir), data_dir)
    training = cli.overridden(experiment.training)
    found = {
        "ratio": ratio(data_dir, model, training),
        "training": shares(Path(options.run_dir), data_dir, model, training),
    }
    if options.output:
        write_json(Path(options.output), {**provenance(hardware()), **found})
    cli.print_result(found)


if __name__ == "__main__":
    flags.DEFINE_string("config", "copy_50_k64", "experiment, a file in experiments/configs")
    flags.DEFINE_string("data_dir", None, "data directory", required=True)
    flags.DEFINE_string("run_dir", "runs/training_cost", "run directory, which must not be there")
    flags.DEFINE_float("minutes", 10.0, "of training", lower_bound=0.0)
    flags.DEFINE_integer("repeats", 5, "timed turns of 20 updates, after one that is not")
    flags.DEFINE_string("output", None, "JSON file")
    cli.define_override_flags(ModelConfig)
    cli.define_override_flags(TrainingConfig)
    cli.run(main)

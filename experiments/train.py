"""Trains a model: python -m experiments.train --config=NAME --data_dir=D --run_dir=D.

Every option of `ModelConfig` and `TrainingConfig` is a flag that replaces what the configuration
says. Started again with the same flags, a run goes on where it stopped.
"""

import dataclasses
from pathlib import Path

from absl import flags

from experiments import cli
from experiments.experiment import load_experiment
from experiments.records import hardware
from seq2seq_memattn.config import DevicesConfig, ModelConfig, TrainingConfig
from seq2seq_memattn.data.manifest import Manifest, read_manifest
from seq2seq_memattn.vocabulary import vocabulary_from_dict

FROM_DATA = ("source_vocab_size", "target_vocab_size")  # what nobody can choose for a training


def fit_to_data(model: ModelConfig, manifest: Manifest, data_dir: Path) -> ModelConfig:
    """The model with the vocabulary sizes and the longest source of its data."""
    longest = max(split.max_source_length for split in manifest.splits.values())
    if model.needs_source_length and 0 < model.max_source_length < longest:
        raise ValueError(
            f"--max_source_length: expected at least {longest}, the longest source of {data_dir} "
            f"with its end token; got {model.max_source_length}"
        )
    needs_length = model.needs_source_length and not model.max_source_length
    return dataclasses.replace(
        model,
        source_vocab_size=vocabulary_from_dict(manifest.source_vocabulary, data_dir).size,
        target_vocab_size=vocabulary_from_dict(manifest.target_vocabulary, data_dir).size,
        max_source_length=longest if needs_length else model.max_source_length,
    )


def train(
    data_dir: Path,
    run_dir: Path,
    model: ModelConfig,
    training: TrainingConfig,
    init_from: Path | None = None,
    devices: DevicesConfig | None = None,
    profile: tuple[int, int] | None = None,
) -> dict | None:
    """Trains in `run_dir` from wherever it stands; returns the figures of the run.

    Of several processes that train together, the chief alone has them.
    """
    model = fit_to_data(model, read_manifest(data_dir), data_dir)
    from seq2seq_memattn.training.loop import Trainer  # TensorFlow: not before the flags are read

    trainer = Trainer(run_dir, data_dir, model, training, init_from, devices, profile)
    result = trainer.run()
    return result._asdict() if trainer.workers.is_chief else None


def profiled_updates(value: str | None) -> tuple[int, int] | None:
    """The first and the last update of `--profile_steps`."""
    if value is None:
        return None
    first, _, last = value.partition(":")
    if not (first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last)):
        raise ValueError(f"--profile_steps: expected FIRST:LAST, updates from 1 on; got {value!r}")
    return int(first), int(last)


def main(arguments: list[str]) -> None:
    """Trains one run from flags."""
    del arguments
    from seq2seq_memattn.training.loop import InterruptedRun
    from seq2seq_memattn.training.peers import LostWorker

    experiment = load_experiment(flags.FLAGS.config)
    try:
        figures = train(
            Path(flags.FLAGS.data_dir),
            Path(flags.FLAGS.run_dir),
            cli.overridden(experiment.model),
            cli.overridden(experiment.training),
            Path(flags.FLAGS.init_from) if flags.FLAGS.init_from else None,
            cli.options_from_flags(DevicesConfig),
            profiled_updates(flags.FLAGS.profile_steps),
        )
    except InterruptedRun as interrupted:
        cli.print_note(str(interrupted))
        raise SystemExit(128 + interrupted.signal_number) from None
    except LostWorker as lost:
        cli.print_note(f"error: {lost}")
        raise SystemExit(cli.EXIT_TRY_AGAIN) from None
    if figures is not None:
        cli.print_result({**figures, "hardware": hardware()})


if __name__ == "__main__":
    flags.DEFINE_string("config", None, "experiment, a file in experiments/configs", required=True)
    flags.DEFINE_string("data_dir", None, "data directory", required=True)
    flags.DEFINE_string("run_dir", None, "run directory, made or gone on with", required=True)
    flags.DEFINE_string(
        "init_from", None, "a run whose best weights a new run begins with, instead of random ones"
    )
    cli.define_override_flags(ModelConfig, leave_out=FROM_DATA)
    cli.define_override_flags(TrainingConfig)
    cli.define_flags(DevicesConfig)
    flags.DEFINE_string(
        "profile_steps", None, "FIRST:LAST, updates of which a profile for TensorBoard is written"
    )
    cli.run(main)

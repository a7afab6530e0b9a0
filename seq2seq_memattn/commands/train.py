"""Trains a model.

Each option of `ModelConfig` and `TrainingConfig` is also a flag, which overrides the configuration.
To resume a run, start it again with the same flags.
"""

import dataclasses
from pathlib import Path

from seq2seq_memattn.attention.registry import CHOICES
from seq2seq_memattn.commands.shared import cli, run_flags
from seq2seq_memattn.compute.hardware import hardware
from seq2seq_memattn.config import DevicesConfig, ModelConfig, TrainingConfig
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.data.model_sizes import FROM_DATA, fit_to_data
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.presets.load import FAMILIES, load_preset


def train(
    data_dir: Path,
    run_dir: Path,
    model: ModelConfig,
    training: TrainingConfig,
    init_from: Path | None = None,
    devices: DevicesConfig | None = None,
    profile: tuple[int, int] | None = None,
) -> dict | None:
    """Starts or resumes the run in `run_dir`, and returns the figures of the run.

    If several processes train together, only the chief returns figures; the others return None.
    """
    model = fit_to_data(model, read_manifest(data_dir), data_dir)
    from seq2seq_memattn.training.loop import Trainer  # loads TensorFlow: after the flags are read

    trainer = Trainer(run_dir, data_dir, model, training, init_from, devices, profile)
    result = trainer.run()
    return result._asdict() if trainer.workers.is_chief else None


def profiled_updates(value: str | None) -> tuple[int, int] | None:
    """The first and the last update of `--profile_steps`."""
    if value is None:
        return None
    first, _, last = value.partition(":")
    if not (first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last)):
        raise ValueError(
            f"--profile_steps: expected FIRST:LAST, two updates, 1 <= FIRST <= LAST; got {value!r}"
        )
    return int(first), int(last)


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.group("Run")
    flags.string(
        "config",
        None,
        f"a preset's name ({', '.join(FAMILIES)}), or a file: TOML, or a run's config.json",
        required=True,
    )
    flags.string("data_dir", None, "data directory", required=True)
    flags.string("run_dir", None, "run directory; an existing run is resumed", required=True)
    flags.string(
        "init_from",
        None,
        "start a new run from the best weights of the run in this directory; weights that it "
        "lacks, such as those of another attention, are newly initialised",
    )
    flags.string("profile_steps", None, "FIRST:LAST, updates to profile for TensorBoard")
    flags.group("Model (overrides the configuration)")
    flags.replacements(ModelConfig, leave_out=FROM_DATA, more={"attention": f": {CHOICES}"})
    flags.group("Training (overrides the configuration)")
    flags.replacements(TrainingConfig)
    flags.group("Devices and processes")
    flags.options(DevicesConfig)


# Flags that have an effect only with some values of another option.
OF_SCHEDULES = {
    "decay_start": ("exponential",),
    "decay_every": ("exponential",),
    "decay_staircase": ("exponential",),
    "decay_rate": ("exponential", "plateau"),
    "decay_patience": ("plateau",),
}


def main(arguments: cli.Arguments) -> None:
    """Trains the run that the flags describe."""
    preset = load_preset(arguments.config)
    # A file may have the vocabulary sizes of other data, which flags need not fit.
    sizes = {name: getattr(ModelConfig, name) for name in FROM_DATA}
    model = cli.replaced(dataclasses.replace(preset.model, **sizes), arguments)
    training = cli.replaced(preset.training, arguments)
    for name, schedules in OF_SCHEDULES.items():
        if name in arguments.given and training.schedule not in schedules:
            print_note(f"--{name} has no effect: the schedule is {training.schedule}")
    from seq2seq_memattn.training.distributed.peers import LostWorker
    from seq2seq_memattn.training.loop import InterruptedRun  # loads TensorFlow; see `train`

    run_flags.report_slow_products(training.precision)
    try:
        figures = train(
            Path(arguments.data_dir),
            Path(arguments.run_dir),
            model,
            training,
            Path(arguments.init_from) if arguments.init_from else None,
            cli.options_from(arguments, DevicesConfig),
            profiled_updates(arguments.profile_steps),
        )
    except InterruptedRun as interrupted:
        print_note(str(interrupted))
        raise SystemExit(128 + interrupted.signal_number) from None
    except LostWorker as lost:
        print_note(f"error: {lost}")
        raise SystemExit(cli.EXIT_TRY_AGAIN) from None
    if figures is not None:
        cli.print_result({**figures, "hardware": hardware()})

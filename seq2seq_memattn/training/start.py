"""Prepares the start of a training: devices, data, model, and the progress of the run."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import keras

from seq2seq_memattn.config import DevicesConfig, ModelConfig, TrainingConfig
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.data.model_sizes import longest_source
from seq2seq_memattn.data.splits import SplitData
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.runs.checkpoints import CheckpointFolder, read_shared_weights
from seq2seq_memattn.runs.directory import (
    BEST_NAME,
    CHECKPOINTS_NAME,
    INIT_SHA256,
    check_run,
    differences,
    load_weights,
    open_run,
    read_model_config,
    run_options,
    training_lock,
)
from seq2seq_memattn.training.distributed.cluster import find_cluster
from seq2seq_memattn.training.distributed.workers import Devices, Workers
from seq2seq_memattn.training.make import find_devices, local_model, make_parts
from seq2seq_memattn.training.progress import Progress
from seq2seq_memattn.training.updates.loss_scale import LossScale
from seq2seq_memattn.vocabulary import have_same_ids

# The maximum number of different padded lengths that XLA compiles for, without `batch_tokens`.
MOST_WIDTHS = 4


class Start(NamedTuple):
    """The parts of a training before its first update.

    Fields:
        workers: `Workers`.
        num_workers: int. Processes that share the updates.
        train, valid: `SplitData`.
        model, optimizer, updater: see `make_parts`.
        local_model: see `make.local_model`.
        folder: `CheckpointFolder`.
        checkpoints: the checkpoints that existed when the run was read.
        progress: `Progress`.
        notes: messages about the start.
    """

    workers: Workers
    num_workers: int
    train: SplitData
    valid: SplitData
    model: Seq2Seq
    optimizer: Any
    updater: Any
    local_model: Seq2Seq
    folder: CheckpointFolder
    checkpoints: list[Path]
    progress: Progress
    notes: list[str]


def make_start(
    run_dir: Path,
    data_dir: Path,
    model_config: ModelConfig,
    config: TrainingConfig,
    init_from: Path | None,
    devices: DevicesConfig,
) -> Start:
    """Makes the parts of a training and reads the progress of the run; see `Trainer`."""
    strategy, workers, num_workers = _devices(
        run_dir, data_dir, model_config, config, init_from, devices
    )
    train, valid = _splits(data_dir, config)
    with workers.named_losses():
        model, optimizer, updater = make_parts(model_config, config, strategy)
    variables = [*model.variables, *optimizer.variables]
    folder = CheckpointFolder(run_dir / CHECKPOINTS_NAME, config.keep)
    progress = Progress()
    progress.loss_scale = LossScale.first(config.precision)
    teacher = updater.teacher.identity if updater.teacher else None
    agree_on_teacher(config.teacher, teacher, workers)
    notes = list(updater.teacher.problems) if updater.teacher else []
    saved = None
    checkpoints = folder.paths()  # before they are read: another process may save meanwhile
    if workers.is_chief:
        if (run_dir / BEST_NAME).exists() and not folder.paths():
            raise ValueError(
                f"{run_dir}: the run has no checkpoints to resume from; training it from scratch "
                "would replace its best weights, so choose another --run_dir"
            )
        with workers.named_losses():
            if init_from is not None and not folder.paths():
                notes += _begin_with(init_from, model, data_dir)
            elif config.context_weight and not folder.paths():
                notes.append(
                    "contexts of encoders with different weights are compared: begin with the "
                    f"teacher's weights, --init_from={config.teacher}"
                )
            saved, problems = folder.restore(variables)
        if saved is not None:
            notes += [f"{problem}; the one before it is used" for problem in problems]
    with workers.named_losses():
        saved = workers.from_chief(saved)
    progress.teacher = teacher
    if saved is not None:
        if "teacher" in saved:  # earlier versions did not record it
            _check_teacher(config.teacher, teacher, saved["teacher"])
        progress.load(saved)
        notes.append(f"resuming from update {progress.update}")
    if workers.is_chief:
        open_run(run_dir, data_dir, model_config, config, init_from)  # the first write to `run_dir`
    with workers.named_losses():
        workers.assign_from_chief(variables)
    return Start(
        workers,
        num_workers,
        train,
        valid,
        model,
        optimizer,
        updater,
        local_model(model, strategy),
        folder,
        checkpoints,
        progress,
        notes,
    )


def agree_on(options: Any, workers: Workers) -> None:
    """Raises ValueError if this process has other options than the chief."""
    with workers.named_losses():
        chiefs = workers.from_chief(options)
    # Only the chief reads `init_from`; the other processes need no access to it.
    if found := differences(chiefs, options, free=("init_from", INIT_SHA256)):
        different = "; ".join(f"{name} is {own!r}, not {of!r}" for name, of, own in found)
        raise ValueError(f"other options or data than the chief has: {different}")


def _devices(
    run_dir: Path,
    data_dir: Path,
    model_config: ModelConfig,
    config: TrainingConfig,
    init_from: Path | None,
    devices: DevicesConfig,
) -> Devices:
    """Checks that this process may train the run, and returns the devices."""
    cluster = find_cluster(devices, os.environ)
    options = None
    if cluster is None or not cluster.serves:
        if cluster is None or cluster.position == 0:
            options = check_run(run_dir, data_dir, model_config, config, init_from)
        else:  # this process does not use `run_dir`
            options = run_options(data_dir, model_config, config, init_from)
        if config.teacher:
            _check_limit(Path(config.teacher), data_dir)
            _check_vocabularies(Path(config.teacher), data_dir)
    if run_dir.exists() and (cluster is None or cluster.position == 0):
        with training_lock(run_dir):  # a locked run fails now, not after loading data and model
            pass
    found = find_devices(devices)
    agree_on(options, found.workers)
    return found


def _splits(data_dir: Path, config: TrainingConfig) -> tuple[SplitData, SplitData]:
    compiles = config.jit_compile or keras.backend.backend() != "tensorflow"
    train = SplitData(
        data_dir,
        "train",
        config.batch_size,
        config.bucket_width,
        config.seed,
        pad_to_multiple=_width_step(data_dir, config) if compiles else None,
        batch_tokens=config.batch_tokens,
    )
    return train, SplitData(data_dir, "valid", config.batch_size, shuffle=False)


def _width_step(data_dir: Path, config: TrainingConfig) -> int:
    """The multiple to which padded lengths are rounded up for XLA; 1: only to a bucket's end.

    Compiling takes seconds for each length, so there must be few lengths. With `batch_tokens`, the
    size of a batch is computed from the longest length that its bucket allows, so no padded length
    may be longer.
    """
    split = read_manifest(data_dir).split("train")
    longest = max(split.max_source_length, split.max_target_length)
    step = -(-longest // MOST_WIDTHS)
    return step if step > config.bucket_width and not config.batch_tokens else 1


def _begin_with(run_dir: Path, model: Seq2Seq, data_dir: Path) -> list[str]:
    """Loads another run's best weights, as far as the model also has them; returns messages."""
    _check_vocabularies(run_dir, data_dir)
    record, problems = load_weights(run_dir, model.weights, read=read_shared_weights)
    notes = [*problems, f"starting with the weights of {run_dir}, update {record['update']}"]
    if record["new"]:
        notes.append(f"newly initialised weights: {', '.join(record['new'])}")
    if record["left_out"]:
        notes.append(f"weights of {run_dir} left out: {', '.join(record['left_out'])}")
    return notes


def agree_on_teacher(run_dir: str, teacher: dict[str, Any] | None, workers: Workers) -> None:
    """Raises ValueError if this process's teacher has other weights than the chief's."""
    if teacher is None:
        return
    with workers.named_losses():
        chiefs = workers.from_chief(teacher)
    if teacher != chiefs:
        raise ValueError(f"{run_dir}: expected the same weights as the chief: {_named(chiefs)}")


def _check_teacher(run_dir: str, now: dict[str, Any] | None, before: dict[str, Any] | None) -> None:
    """Raises ValueError if a teacher has other weights than when the run began."""
    if now != before:
        raise ValueError(
            f"{run_dir}: expected the weights that this teacher had when the run began, "
            f"{_named(before)}; they are now {_named(now)}"
        )


def _named(teacher: dict[str, Any] | None) -> str:
    if teacher is None:
        return "none"
    return f"update {teacher['update']}, SHA-256 {teacher['sha256'][:8]}"


def _check_limit(teacher: Path, data_dir: Path) -> None:
    """Raises ValueError if a teacher cannot read the longest source."""
    limit = read_model_config(teacher).longest_source
    longest = longest_source(read_manifest(data_dir))
    if limit is not None and limit < longest:
        raise ValueError(
            f"{teacher}: expected a teacher for sources of {longest} tokens; it was made for at "
            f"most {limit}"
        )


def _check_vocabularies(run_dir: Path, data_dir: Path) -> None:
    """Raises ValueError if a run has other vocabularies than the data."""
    theirs, ours = read_manifest(run_dir, check_files=False), read_manifest(data_dir)
    for side in ("source_vocabulary", "target_vocabulary"):
        # With other vocabularies of the same size, the weights would load, but ids would change
        # their meanings.
        if not have_same_ids(getattr(theirs, side), getattr(ours, side)):
            raise ValueError(
                f"{run_dir}: expected a run with the vocabularies of {data_dir}; its {side} is "
                "different"
            )

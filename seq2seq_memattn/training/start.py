"""What a training starts from: devices, data, a model, and how far the run has come."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import keras

from seq2seq_memattn.config import DevicesConfig, ModelConfig, TrainingConfig
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.data.splits import SplitData
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.runs.checkpoints import CheckpointFolder
from seq2seq_memattn.runs.directory import (
    CHECKPOINTS_NAME,
    check_run,
    differences,
    load_weights,
    open_run,
    training_lock,
)
from seq2seq_memattn.training.distributed.cluster import find_cluster
from seq2seq_memattn.training.distributed.workers import Devices, Workers
from seq2seq_memattn.training.make import find_devices, local_model, make_parts
from seq2seq_memattn.training.progress import Progress
from seq2seq_memattn.training.updates.loss_scale import LossScale

MOST_WIDTHS = 4  # of batches, where XLA compiles, if buckets are more


class Start(NamedTuple):
    """Where a training stands before its first update.

    Fields:
        workers: `Workers`.
        num_workers: int. Processes that share the updates.
        train, valid: `SplitData`.
        model, optimizer, updater: see `make_parts`.
        local_model: see `make.local_model`.
        folder: `CheckpointFolder`.
        checkpoints: those that were there when the run was read.
        progress: `Progress`.
        notes: what there is to say of the start.
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
    """Makes all that a run needs, and reads how far it has come; see `Trainer`."""
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
    notes: list[str] = []
    saved = None
    if workers.is_chief:
        if init_from is not None and not folder.paths():
            notes = _begin_with(init_from, model, data_dir)
        open_run(run_dir, data_dir, model_config, config, init_from)  # the first thing written
        saved, problems = folder.restore(variables)
        if saved is not None:
            notes = [f"{problem}; the one before it is used" for problem in problems]
    checkpoints = folder.paths()
    with workers.named_losses():
        saved = workers.from_chief(saved)
        workers.assign_from_chief(variables)
    if saved is not None:
        progress.load(saved)
        notes.append(f"going on from update {progress.update}")
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
    """Raises ValueError if this process was started with other options than the chief."""
    with workers.named_losses():
        chiefs = workers.from_chief(options)
    # The chief alone begins with another run, which the others need not see.
    if found := differences(chiefs, options, free=("init_from",)):
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
    """The devices, once the run is one that this process may train on them."""
    cluster = find_cluster(devices, os.environ)
    options = None
    if cluster is None or not cluster.serves:
        options = check_run(run_dir, data_dir, model_config, config, init_from)
    if run_dir.exists() and (cluster is None or cluster.position == 0):
        with training_lock(run_dir):  # refused at once, not when data and model are there
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
    """What widths are multiples of where XLA compiles for each, for seconds: there must be few.

    Not where a batch's tokens are limited, padding included, by the width of its bucket.
    """
    split = read_manifest(data_dir).split("train")
    longest = max(split.max_source_length, split.max_target_length)
    step = -(-longest // MOST_WIDTHS)
    return step if step > config.bucket_width and not config.batch_tokens else 1


def _begin_with(run_dir: Path, model: Seq2Seq, data_dir: Path) -> list[str]:
    """Takes over the best weights of another run; what there is to say of them."""
    theirs, ours = read_manifest(run_dir, check_files=False), read_manifest(data_dir)
    for side in ("source_vocabulary", "target_vocabulary"):
        if getattr(theirs, side) != getattr(ours, side):  # of the same sizes, weights would fit
            raise ValueError(
                f"{run_dir}: expected a run with the vocabularies of {data_dir}; its {side} is "
                "another one"
            )
    record, problems = load_weights(run_dir, model.weights)
    return [*problems, f"beginning with {run_dir}, update {record['update']}"]

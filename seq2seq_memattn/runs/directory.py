"""The directory of a run: its configuration, checkpoints, best weights and figures.

config.json       model and training options, data, versions, command
manifest.json     of the data, with the vocabularies and, beside it, their files and that of
                  truecasing: all that decoding needs of the data
checkpoints/      what the run goes on from
best.npz          the weights of the best validation BLEU, with update and score; written after a
                  checkpoint of the same update
average.npz       the mean of the last checkpoints' weights, if `average_checkpoints` was asked for
metrics.jsonl     one JSON line per logged update and per validation
tensorboard/      the same for TensorBoard
"""

import contextlib
import dataclasses
import importlib.metadata
import json
import platform
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from seq2seq_memattn._version import __version__
from seq2seq_memattn.compute.precision import dtype_policy
from seq2seq_memattn.config import ModelConfig, Precision, TrainingConfig
from seq2seq_memattn.data.locks import locked
from seq2seq_memattn.data.manifest import MANIFEST_NAME, Manifest, read_manifest
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.runs.checkpoints import CheckpointFolder, DamagedCheckpoint, read_weights
from seq2seq_memattn.text.files import atomic_binary, open_output, remove_leftovers
from seq2seq_memattn.text.form import TextForm
from seq2seq_memattn.vocabulary import Vocabulary, vocabulary_files, vocabulary_from_dict

CONFIG_NAME = "config.json"
BEST_NAME = "best.npz"
CHECKPOINTS_NAME = "checkpoints"

# Weights of a run that have names of their own; all others are called by their files.
BEST = "best"
LATEST = "latest"

# What may change from one start of a run to the next: it leaves the updates as they are
# (accumulate: but for rounding and the masks of dropout, as another number of replicas does).
FREE_OPTIONS = frozenset(
    {
        "num_updates",
        "checkpoint_minutes",
        "keep",
        "validate_every",
        "valid_examples",
        "beam_size",
        "patience",
        "stop_at_bleu",
        "log_every",
        "max_nan_updates",
        "accumulate",
    }
)
# With the plateau schedule, the learning rate hangs on these.
PLATEAU_OPTIONS = frozenset({"validate_every", "valid_examples", "beam_size"})


def versions() -> dict[str, str]:
    """Versions of everything that shapes a result."""
    packages = (
        *("tensorflow", "tensorflow-text", "jax", "keras", "numpy"),
        *("sentencepiece", "sacrebleu"),
    )
    found = {"python": platform.python_version(), "seq2seq_memattn": __version__}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def open_run(
    run_dir: Path,
    data_dir: Path,
    model: ModelConfig,
    training: TrainingConfig,
    init_from: Path | None = None,
) -> None:
    """Makes a run directory, or goes on with the one that is there.

    Raises:
        ValueError: as `check_run`, and if the run is being trained.
        OSError: if the disk is full; what was there stays.
    """
    check_run(run_dir, data_dir, model, training, init_from)
    run_dir.mkdir(parents=True, exist_ok=True)
    with training_lock(run_dir):  # what a training is writing is no leftover
        # Again: another start may have made the run by now.
        new = check_run(run_dir, data_dir, model, training, init_from)
        remove_leftovers(run_dir)
        remove_leftovers(run_dir / CHECKPOINTS_NAME)
        # First: without it, a directory with files is not a run.
        with open_output(run_dir / CONFIG_NAME) as stream:
            json.dump({**new, "versions": versions(), "command": sys.argv}, stream, indent=2)
            stream.write("\n")
        manifest = read_manifest(data_dir)
        vocabularies = vocabulary_files(manifest.source_vocabulary, manifest.target_vocabulary)
        truecase_model = manifest.text_form.get("truecase_model", "")
        for name in filter(None, (*vocabularies, truecase_model, MANIFEST_NAME)):
            with atomic_binary(run_dir / name) as binary:
                binary.write((data_dir / name).read_bytes())


def training_lock(run_dir: Path) -> contextlib.AbstractContextManager[None]:
    """Keeps two trainings of one run apart, which would write over each other's checkpoints."""
    return locked(run_dir, "training this run")


def check_run(
    run_dir: Path,
    data_dir: Path,
    model: ModelConfig,
    training: TrainingConfig,
    init_from: Path | None = None,
) -> dict[str, Any]:
    """Checks that a directory is a run of this configuration, or can be made one; changes nothing.

    Args:
        run_dir, data_dir: Path.
        model, training: the configuration.
        init_from: the run whose weights this one begins with, or None.

    Returns:
        What makes two runs the same: options by group.

    Raises:
        ValueError: if it is a run of another one; names the options that differ.
    """
    manifest = read_manifest(data_dir)
    if model.tied_embeddings == "all" and manifest.source_vocabulary != manifest.target_vocabulary:
        raise ValueError(
            f"{data_dir}: expected one joint vocabulary for both sides, which tied_embeddings=all "
            "needs; got two"
        )
    new = {
        "model": model.to_dict(),
        "training": training.to_dict(),
        "data": _fingerprint(manifest),
        "start": {"init_from": str(init_from) if init_from is not None else None},
    }
    path = run_dir / CONFIG_NAME
    if path.exists():
        old = _read_json(path)
        if old.get("data") != new["data"]:
            raise ValueError(
                f"{run_dir}: a run on other data than those of {data_dir}; it goes on with its "
                "own, and --init_from begins a new run with its weights"
            )
        _check_same(path, old, new)
    elif run_dir.exists() and not all(map(_is_killed_start, run_dir.iterdir())):
        raise ValueError(f"{run_dir}: expected a run or an empty directory; it has other files")
    return new


def _is_killed_start(path: Path) -> bool:
    """Whether this is all that a start leaves that was killed while it wrote its configuration."""
    return path.name.startswith(f".{CONFIG_NAME}.") and path.suffix == ".tmp"


def _fingerprint(manifest: Manifest) -> dict[str, str]:
    """Checksums of the data, by file."""
    return {file.path: file.sha256 for split in manifest.splits.values() for file in split.files}


def _check_same(path: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    # Options that came later than the run had their defaults.
    defaults = {"model": ModelConfig().to_dict(), "training": TrainingConfig().to_dict()}
    is_plateau = new["training"]["schedule"] == "plateau"
    free = FREE_OPTIONS - PLATEAU_OPTIONS if is_plateau else FREE_OPTIONS
    saved = {group: {**defaults.get(group, {}), **old.get(group, {})} for group in new}
    if found := differences(saved, new, free):
        differing = "; ".join(f"{name} was {old!r}, is {now!r}" for name, old, now in found)
        raise ValueError(f"{path}: a run of another configuration: {differing}")


def differences(
    first: dict[str, Any], second: dict[str, Any], free: Collection[str] = ()
) -> list[tuple[str, Any, Any]]:
    """The options in which two records differ, as `check_run` returns them.

    Args:
        first, second: options by group, of the same groups.
        free: names of options that may differ.

    Returns:
        Name and both values of each.
    """
    return [
        (name, first[group].get(name), second[group].get(name))
        for group in second
        for name in sorted({*first[group], *second[group]})
        if first[group].get(name) != second[group].get(name) and name not in free
    ]


@dataclasses.dataclass(frozen=True)
class Run:
    """A run as decoding needs it.

    Args:
        directory: Path.
        model: `Seq2Seq` with the weights of `update`.
        source_vocabulary, target_vocabulary: `Vocabulary`.
        update: int. Updates that made the weights.
        record: what was saved with the weights, such as the best BLEU.
        text_form: `TextForm` of the text it was trained on.
        problems: one line for each damaged checkpoint that was passed over.
    """

    directory: Path
    model: Seq2Seq
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    update: int
    record: dict[str, Any]
    text_form: TextForm
    problems: list[str]


def load_run(
    run_dir: Path,
    checkpoint: str = BEST,
    threshold: float | None = None,
    precision: Precision = "float32",
) -> Run:
    """Loads a run with the weights that `load_weights` says.

    Args:
        run_dir: Path.
        checkpoint: see `load_weights`.
        threshold: replaces that of the model's flexible attention; None: the run's.
        precision: the model's, whatever the run was trained with.

    Raises:
        ValueError: if the directory is no run, there are no such weights, or the model's attention
            has no threshold.
    """
    config = read_model_config(run_dir)
    if threshold is not None:
        if config.attention != "flexible":
            raise ValueError(
                f"{run_dir}: expected flexible attention, which has a threshold; it is "
                f"{config.attention}"
            )
        config = dataclasses.replace(config, threshold=threshold)
    manifest = read_manifest(run_dir, check_files=False)
    model = Seq2Seq(config, dtype=dtype_policy(precision))
    record, problems = load_weights(run_dir, model.weights, checkpoint)
    return Run(
        run_dir,
        model,
        vocabulary_from_dict(manifest.source_vocabulary, run_dir),
        vocabulary_from_dict(manifest.target_vocabulary, run_dir),
        record["update"],
        record,
        TextForm.from_dict(dict(manifest.text_form)),
        problems,
    )


def load_weights(
    run_dir: Path, weights: Sequence[Any], checkpoint: str = BEST
) -> tuple[dict[str, Any], list[str]]:
    """Assigns a model's weights from those of a run.

    Args:
        run_dir: Path.
        weights: the `weights` of a `Seq2Seq`.
        checkpoint: "best": those of the best validation, or the last ones if the run has not been
            validated yet; "latest": those of the newest checkpoint that is whole; else the name of
            a file in the run's directory or among its checkpoints.

    Returns:
        record: what was saved with the weights: `update` and more.
        problems: one line for each damaged checkpoint that was passed over.

    Raises:
        ValueError: if the directory is no run, there are no such weights, or they do not fit.
    """
    read_model_config(run_dir)  # says so where there is no run
    best, folder = run_dir / BEST_NAME, CheckpointFolder(run_dir / CHECKPOINTS_NAME, sys.maxsize)
    if checkpoint not in (BEST, LATEST):
        return read_weights(_named_weights(run_dir, folder, checkpoint), weights), []
    if checkpoint == BEST and best.exists():
        try:
            return read_weights(best, weights), []
        except DamagedCheckpoint as error:
            others = ", ".join([LATEST, *(path.name for path in folder.paths())])
            raise ValueError(f"{error}; other checkpoints of the run: {others}") from error
    record, problems = folder.restore_weights(weights)
    if record is None:
        raise ValueError(f"{run_dir}: the run has no weights yet")
    return record, problems


def _named_weights(run_dir: Path, folder: CheckpointFolder, name: str) -> Path:
    there = {path.name: path for path in (*folder.paths(), *sorted(run_dir.glob("*.npz")))}
    if name not in there:
        raise ValueError(
            f"{run_dir}: expected {BEST}, {LATEST} or one of its files of weights "
            f"({', '.join(there) or 'there is none'}); got {name!r}"
        )
    return there[name]


def read_model_config(run_dir: Path) -> ModelConfig:
    """The options of a run's model; raises ValueError if the directory is no run."""
    path = run_dir / CONFIG_NAME
    if not path.exists():
        raise ValueError(f"{run_dir}: expected a run directory; it has no {CONFIG_NAME}")
    return ModelConfig.from_dict(_read_json(path)["model"])


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON ({error})") from error

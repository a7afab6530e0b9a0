"""The directory of a run: its configuration, checkpoints, best weights and figures.

config.json       options of model and training, data, versions, command
manifest.json     the manifest of the data; the files of vocabularies and truecasing are copied
                  beside it, so decoding does not need the data directory
checkpoints/      the checkpoints from which the run resumes
best.npz          the weights with the best validation BLEU, with update and score; written after a
                  checkpoint of the same update
average.npz       the mean of the last checkpoints' weights, if `average_checkpoints` was run
metrics.jsonl     one JSON line per logged update and per validation
tensorboard/      the same figures for TensorBoard
"""

import contextlib
import dataclasses
import json
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from seq2seq_memattn import packages
from seq2seq_memattn.compute.precision import dtype_policy
from seq2seq_memattn.config import (
    DecodingPrecision,
    ModelConfig,
    TrainingConfig,
    used_options,
)
from seq2seq_memattn.data.locks import locked
from seq2seq_memattn.data.manifest import MANIFEST_NAME, Manifest, read_manifest, sha256_of
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.runs.checkpoints import (
    CheckpointFolder,
    DamagedCheckpoint,
    Reader,
    read_weights,
)
from seq2seq_memattn.text.files import atomic_binary, open_output, remove_leftovers
from seq2seq_memattn.text.form import TextForm
from seq2seq_memattn.vocabulary import (
    Vocabulary,
    have_same_ids,
    vocabulary_files,
    vocabulary_from_dict,
)

CONFIG_NAME = "config.json"
BEST_NAME = "best.npz"
CHECKPOINTS_NAME = "checkpoints"

# Names of weights; all other weights of a run go by the names of their files.
BEST = "best"
LATEST = "latest"

INIT_SHA256 = "init_from_sha256"  # checksum of the first weights, in config.json

# Options that may differ between two starts of a run, because they change neither the updates nor
# the validation BLEU, by which the best weights are chosen.
# `teacher` is free because a teacher's directory may have moved. Its weights are compared instead.
# `accumulate` changes only rounding and dropout masks, as the number of replicas does. With
# `balance_weight`, it also changes the loss and is not free.
FREE_OPTIONS = frozenset(
    {
        "num_updates",
        "checkpoint_minutes",
        "keep",
        "validate_every",
        "patience",
        "stop_at_bleu",
        "log_every",
        "max_nan_updates",
        "teacher",
        "accumulate",
    }
)


def versions() -> dict[str, str]:
    """Versions of the packages that can change a result."""
    return packages.versions(
        *("tensorflow", "tensorflow-text", "jax", "keras", "numpy"),
        *("sentencepiece", "sacrebleu"),
    )


def open_run(
    run_dir: Path,
    data_dir: Path,
    model: ModelConfig,
    training: TrainingConfig,
    init_from: Path | None = None,
) -> None:
    """Makes a run directory, or updates the one that exists so that training can resume.

    Raises:
        ValueError: see `check_run`; also if another process is training the run.
        OSError: if the disk is full; existing files stay as they are.
    """
    check_run(run_dir, data_dir, model, training, init_from)
    run_dir.mkdir(parents=True, exist_ok=True)
    with training_lock(run_dir):  # a file that a training is writing is not a leftover
        # Checked again under the lock: another process may have made the run meanwhile.
        new = check_run(run_dir, data_dir, model, training, init_from)
        for folder in (run_dir, run_dir / CHECKPOINTS_NAME):
            remove_leftovers(folder, is_shared=True)  # other commands may write there
        # Written first: a directory with files but no configuration is not a run.
        with open_output(run_dir / CONFIG_NAME) as stream:
            json.dump({**new, "versions": versions(), "command": sys.argv}, stream, indent=2)
            stream.write("\n")
        manifest = read_manifest(data_dir)
        vocabularies = vocabulary_files(manifest.source_vocabulary, manifest.target_vocabulary)
        truecase_model = manifest.text_form.get("truecase_model", "")
        for name in filter(None, (*vocabularies, truecase_model, MANIFEST_NAME)):
            with atomic_binary(run_dir / name) as binary:
                binary.write((data_dir / name).read_bytes())


def training_lock(run_dir: Path) -> contextlib.AbstractContextManager[bool]:
    """The lock that keeps two trainings from overwriting each other's checkpoints."""
    return locked(run_dir, "training this run")


def check_run(
    run_dir: Path,
    data_dir: Path,
    model: ModelConfig,
    training: TrainingConfig,
    init_from: Path | None = None,
) -> dict[str, Any]:
    """Checks that a directory is a run of this configuration or can become one; changes nothing.

    Args:
        run_dir, data_dir: Path.
        model, training: the configuration.
        init_from: the run with whose weights this run starts, or None.

    Returns:
        The options that identify a run, by group.

    Raises:
        ValueError: if the directory is a run with other options (the message names those that
            differ) or other data, or if it has other files; see also `run_options`.
    """
    path = run_dir / CONFIG_NAME
    old = _read_record(path) if path.exists() else {}
    has_begun = bool(CheckpointFolder(run_dir / CHECKPOINTS_NAME, keep=1).paths())
    first = old.get("start") if has_begun else None  # these weights are no longer read
    new = run_options(data_dir, model, training, init_from, first)
    if path.exists():
        if _has_other_data(run_dir, old.get("data", {}), read_manifest(data_dir)):
            raise ValueError(
                f"{run_dir}: a run on other data than those of {data_dir}; resume it with its own "
                "data, or use --init_from to start a new run from its weights"
            )
        _check_same(path, old, new)
        new["start"] = first or new["start"]
    elif run_dir.exists() and not all(map(_is_killed_start, run_dir.iterdir())):
        raise ValueError(f"{run_dir}: expected a run or an empty directory; it has other files")
    return new


def run_options(
    data_dir: Path,
    model: ModelConfig,
    training: TrainingConfig,
    init_from: Path | None = None,
    first: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The options that identify a run, by group.

    Args:
        data_dir, model, training, init_from: see `check_run`.
        first: the group "start" as a run that resumes has recorded it; None if it is new.

    Raises:
        ValueError: if `model` needs a joint vocabulary and the data have two.
    """
    manifest = read_manifest(data_dir)
    if model.tied_embeddings == "all" and manifest.source_vocabulary != manifest.target_vocabulary:
        raise ValueError(
            f"{data_dir}: expected one joint vocabulary for both sides (tied_embeddings=all needs "
            "it); got two"
        )
    return {
        "model": model.to_dict(),
        "training": training.to_dict(),
        "data": _fingerprint(manifest),
        "start": _start(init_from, first),
    }


def _is_killed_start(path: Path) -> bool:
    """Whether a file is the leftover of a start that was killed while it wrote config.json."""
    return path.name.startswith(f".{CONFIG_NAME}.") and path.suffix == ".tmp"


def _fingerprint(manifest: Manifest) -> dict[str, str]:
    """Checksums of the data that training reads, by file."""
    splits = [manifest.splits[name] for name in ("train", "valid") if name in manifest.splits]
    return {file.path: file.sha256 for split in splits for file in split.files}


def _start(init_from: Path | None, first: dict[str, Any] | None) -> dict[str, Any]:
    """The run whose weights come first, and a checksum by which they are known if it moves.

    Args:
        init_from: the run.
        first: what the run that resumes has recorded; None if it is new.
    """
    name = None if init_from is None else str(init_from)
    if first and first.get("init_from") == name:
        return first  # without reading the weights, which may have changed since
    weights = init_from / BEST_NAME if init_from is not None else None
    found = sha256_of(weights) if weights is not None and weights.exists() else None
    return {"init_from": name, INIT_SHA256: found}


def _has_other_data(run_dir: Path, recorded: dict[str, str], manifest: Manifest) -> bool:
    """Whether a run has other text than data with this manifest, or encodes or scores it otherwise.

    Args:
        run_dir: the run.
        recorded: the checksums in its config.json. Runs of earlier versions recorded all splits.
        manifest: `Manifest` of the data.
    """
    files = _fingerprint(manifest)
    if not (run_dir / MANIFEST_NAME).exists():  # a start was killed before copying the manifest
        return any(recorded.get(name) != checksum for name, checksum in files.items())
    own = read_manifest(run_dir, check_files=False)
    have_same_vocabularies = have_same_ids(
        own.source_vocabulary, manifest.source_vocabulary
    ) and have_same_ids(own.target_vocabulary, manifest.target_vocabulary)
    is_same_text = _fingerprint(own) == files and _form(own) == _form(manifest)
    return not (is_same_text and have_same_vocabularies)


def _form(manifest: Manifest) -> TextForm:
    return TextForm.from_dict(dict(manifest.text_form))


def _check_same(path: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    new = {group: options for group, options in new.items() if group != "data"}
    # Options that did not exist yet when the run began count as having their defaults.
    defaults = {"model": ModelConfig.defaults(), "training": TrainingConfig.defaults()}
    free = {*FREE_OPTIONS, INIT_SHA256}
    if new["training"]["schedule"] == "plateau":  # the learning rate depends on validations
        free.remove("validate_every")
    if new["training"]["balance_weight"]:
        free.remove("accumulate")
    old = {**old, "model": used_options(old.get("model", {}))}
    saved = {group: {**defaults.get(group, {}), **old.get(group, {})} for group in new}
    checksum = new["start"].get(INIT_SHA256)
    if checksum and checksum == saved["start"].get(INIT_SHA256):
        free.add("init_from")  # the run has moved
    if found := differences(saved, new, free):
        differing = "; ".join(f"{name} was {old!r}, is {now!r}" for name, old, now in found)
        raise ValueError(f"{path}: a run with another configuration: {differing}")


def differences(
    first: dict[str, Any], second: dict[str, Any], free: Collection[str] = ()
) -> list[tuple[str, Any, Any]]:
    """The options that differ between two records of `check_run`.

    Args:
        first, second: options by group; both have the same groups.
        free: names of options that may differ.

    Returns:
        Name, first value and second value of each differing option.
    """
    return [
        (name, first[group].get(name), second[group].get(name))
        for group in second
        for name in sorted({*first[group], *second[group]})
        if first[group].get(name) != second[group].get(name) and name not in free
    ]


@dataclasses.dataclass(frozen=True)
class Run:
    """A trained run, loaded for decoding.

    Args:
        directory: Path.
        model: `Seq2Seq` with the weights of `update`, or an `Ensemble` of several runs' models.
        source_vocabulary, target_vocabulary: `Vocabulary`.
        update: int. The number of updates after which the weights were saved. For an ensemble, a
            list with the number of each run.
        record: the record that was saved with the weights, such as the best BLEU.
        text_form: `TextForm` of the training text.
        problems: one line for each damaged checkpoint that was skipped.
    """

    directory: Path
    model: Any
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    update: Any
    record: dict[str, Any]
    text_form: TextForm
    problems: list[str]


def load_run(
    run_dir: Path,
    checkpoint: str = BEST,
    threshold: float | None = None,
    precision: DecodingPrecision = "float32",
) -> Run:
    """Loads a run's model, weights and vocabularies for decoding.

    Args:
        run_dir: Path.
        checkpoint: "best": the weights of the best validation, or the latest ones if the run has
            not been validated yet. "latest": the weights of the newest undamaged checkpoint. Any
            other value is the name of a file in the run directory or among its checkpoints.
        threshold: replaces the run's threshold of flexible attention; None: keeps that threshold.
        precision: precision of the model; the precision of the training does not matter.

    Raises:
        ValueError: if the directory is not a run, the weights do not exist, or `threshold` is given
            and the attention is not flexible.
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
        _form(manifest),
        problems,
    )


def load_weights(
    run_dir: Path, weights: Sequence[Any], checkpoint: str = BEST, read: Reader = read_weights
) -> tuple[dict[str, Any], list[str]]:
    """Assigns the weights of a run to a model.

    Args:
        run_dir: Path.
        weights: the `weights` of a `Seq2Seq`.
        checkpoint: "best": the weights of the best validation, or the latest ones if the run has
            not been validated yet. "latest": the weights of the newest undamaged checkpoint. Any
            other value is the name of a file in the run directory or among its checkpoints.
        read: `read_weights`, or `read_shared_weights`.

    Returns:
        record: the record that was saved with the weights, such as `update`.
        problems: one line for each damaged checkpoint that was skipped.

    Raises:
        ValueError: if the directory is not a run, or the weights do not exist or do not fit.
    """
    read_model_config(run_dir)  # raises if the directory is not a run
    best, folder = run_dir / BEST_NAME, CheckpointFolder(run_dir / CHECKPOINTS_NAME, sys.maxsize)
    if checkpoint not in (BEST, LATEST):
        return read(_named_weights(run_dir, folder, checkpoint), weights), []
    if checkpoint == BEST and best.exists():
        try:
            return read(best, weights), []
        except DamagedCheckpoint as error:
            others = ", ".join([LATEST, *(path.name for path in folder.paths())])
            raise ValueError(f"{error}; other checkpoints of the run: {others}") from error
    record, problems = folder.restore(weights, read)
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
    """Reads the model's configuration of a run; raises ValueError if the directory is not a run."""
    path = run_dir / CONFIG_NAME
    if not path.exists():
        raise ValueError(f"{run_dir}: expected a run directory; it has no {CONFIG_NAME}")
    record = _read_record(path)
    try:
        return ModelConfig.from_dict(used_options(record["model"]))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _read_record(path: Path) -> dict[str, Any]:
    """Reads a run's config.json."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON ({error})") from error
    if not isinstance(record, dict) or not isinstance(record.get("model"), dict):
        raise ValueError(f"{path}: expected the configuration of a run")
    return record

"""The directory of a run: its configuration, checkpoints, best weights and figures.

config.json       model and training options, data, versions, command
manifest.json     of the data, with the vocabularies and, beside it, their files: all that
                  decoding needs of the data
checkpoints/      what the run goes on from
best.npz          the weights of the best validation BLEU, with update and score
metrics.jsonl     one JSON line per logged update and per validation
tensorboard/      the same for TensorBoard
"""

import dataclasses
import importlib.metadata
import json
import platform
import sys
from pathlib import Path
from typing import Any

from seq2seq_memattn._version import __version__
from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.data.manifest import MANIFEST_NAME, Manifest, read_manifest
from seq2seq_memattn.data.text_files import atomic_binary, open_output, remove_leftovers
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.training.checkpoints import CheckpointFolder, read_arrays
from seq2seq_memattn.vocabulary import Vocabulary, vocabulary_files, vocabulary_from_dict

CONFIG_NAME = "config.json"
BEST_NAME = "best.npz"
CHECKPOINTS_NAME = "checkpoints"
METRICS_NAME = "metrics.jsonl"

# What may change from one start of a run to the next: it leaves the updates as they are.
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
    }
)


def versions() -> dict[str, str]:
    """Versions of everything that shapes a result."""
    packages = ("tensorflow", "jax", "keras", "numpy", "sacrebleu")
    found = {"python": platform.python_version(), "seq2seq_memattn": __version__}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def check_run(run_dir: Path, data_dir: Path, model: ModelConfig, training: TrainingConfig) -> None:
    """Refuses a directory that is neither new nor a run of this configuration; changes nothing.

    Raises:
        ValueError: names the options that differ, or says what is there.
    """
    path = run_dir / CONFIG_NAME
    if path.exists():
        _check_same(path, _read_json(path), _describe(data_dir, model, training))
    elif run_dir.exists() and not all(map(_is_killed_start, run_dir.iterdir())):
        raise ValueError(f"{run_dir}: expected a run or an empty directory; it has other files")


def open_run(run_dir: Path, data_dir: Path, model: ModelConfig, training: TrainingConfig) -> None:
    """Makes a run directory, or goes on with the one that is there.

    Raises:
        ValueError: see `check_run`.
        OSError: if the disk is full; what was there stays.
    """
    check_run(run_dir, data_dir, model, training)
    new = _describe(data_dir, model, training)
    run_dir.mkdir(parents=True, exist_ok=True)
    remove_leftovers(run_dir)
    remove_leftovers(run_dir / CHECKPOINTS_NAME)
    # First: without it, a directory with files is not a run.
    with open_output(run_dir / CONFIG_NAME) as stream:
        json.dump({**new, "versions": versions(), "command": sys.argv}, stream, indent=2)
        stream.write("\n")
    manifest = read_manifest(data_dir)
    vocabularies = vocabulary_files(manifest.source_vocabulary, manifest.target_vocabulary)
    for name in (*vocabularies, MANIFEST_NAME):
        with atomic_binary(run_dir / name) as binary:
            binary.write((data_dir / name).read_bytes())


def _describe(data_dir: Path, model: ModelConfig, training: TrainingConfig) -> dict[str, Any]:
    return {
        "model": model.to_dict(),
        "training": training.to_dict(),
        "data": _fingerprint(read_manifest(data_dir)),
    }


def _is_killed_start(path: Path) -> bool:
    """Whether this is all that a start leaves that was killed while it wrote its configuration."""
    return path.name.startswith(f".{CONFIG_NAME}.") and path.suffix == ".tmp"


def _fingerprint(manifest: Manifest) -> dict[str, str]:
    """Checksums of the data, by file."""
    return {file.path: file.sha256 for split in manifest.splits.values() for file in split.files}


def _check_same(path: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    # A run of an earlier version lacks the options that came later: it had their defaults.
    defaults = {"model": ModelConfig().to_dict(), "training": TrainingConfig().to_dict()}
    differing = []
    for group in ("model", "training", "data"):
        given = {**defaults.get(group, {}), **old.get(group, {})}
        for name in sorted({*given, *new[group]}):
            before, now = given.get(name), new[group].get(name)
            if before != now and name not in FREE_OPTIONS:
                differing.append(f"{name} was {before!r}, is {now!r}")
    if differing:
        raise ValueError(f"{path}: a run of another configuration: {'; '.join(differing)}")


@dataclasses.dataclass(frozen=True)
class Run:
    """A run as decoding needs it.

    Args:
        directory: Path.
        model: `Seq2Seq` with the weights of `update`.
        source_vocabulary, target_vocabulary: `Vocabulary`.
        update: int. Updates that made the weights.
        record: what was saved with the weights, such as the best BLEU.
        max_source_length: int. Longest source the model was trained on, end token included.
    """

    directory: Path
    model: Seq2Seq
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    update: int
    record: dict[str, Any]
    max_source_length: int


def load_run(run_dir: Path) -> Run:
    """Loads a run's best weights, or the last ones if it has not been validated yet.

    Raises:
        ValueError: if the directory is no run, or has no weights yet.
    """
    path = run_dir / CONFIG_NAME
    if not path.exists():
        raise ValueError(f"{run_dir}: expected a run directory; it has no {CONFIG_NAME}")
    config = ModelConfig.from_dict(_read_json(path).get("model", {}))
    manifest = read_manifest(run_dir, check_files=False)
    model = Seq2Seq(config)
    best = run_dir / BEST_NAME
    record = read_arrays(best, model.weights) if best.exists() else _last_weights(run_dir, model)
    return Run(
        run_dir,
        model,
        vocabulary_from_dict(manifest.source_vocabulary, run_dir),
        vocabulary_from_dict(manifest.target_vocabulary, run_dir),
        record["update"],
        record,
        max(split.max_source_length for split in manifest.splits.values()),
    )


def _last_weights(run_dir: Path, model: Seq2Seq) -> dict[str, Any]:
    folder = CheckpointFolder(run_dir / CHECKPOINTS_NAME, keep=sys.maxsize)
    record, _ = folder.restore(model.variables)
    if record is None:
        raise ValueError(f"{run_dir}: the run has no weights yet")
    return record


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON ({error})") from error

"""A run that takes seconds, and comparisons of two such runs."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.data.model_sizes import FROM_DATA, fit_to_data
from seq2seq_memattn.preparation.copy_task import CopyTaskOptions, prepare
from seq2seq_memattn.runs.directory import Run, load_run
from seq2seq_memattn.training.loop import Trainer

Arrays = dict[str, npt.NDArray[Any]]

NUM_UPDATES = 12
SYMBOLS = 4
MODEL = ModelConfig(
    source_vocab_size=3 + SYMBOLS,
    target_vocab_size=3 + SYMBOLS,
    embedding_dim=5,
    encoder_units=4,
    encoder_layers=1,
    decoder_units=6,
    decoder_layers=2,
    attention="k_memory:3",
    dropout=0.2,
)
# No interval is a multiple of another. A run takes just over two epochs, with a checkpoint after
# each update.
TRAINING = TrainingConfig(
    batch_size=8,
    bucket_width=4,
    num_updates=NUM_UPDATES,
    learning_rate=1e-2,
    clip_norm=1.0,
    checkpoint_minutes=0.0,
    keep=3,
    validate_every=5,
    valid_examples=6,
    beam_size=2,
    log_every=3,
)
TIMINGS = (
    "seconds",
    "seconds_left",
    "tokens_per_second",
    "tokens_per_second_per_worker",
    "decoding_seconds",
    "waiting",
    "memory_mib",
)


def make_data(folder: Path, seed: int = 0) -> Path:
    """A data directory of short sequences."""
    options = CopyTaskOptions(
        max_length=7,
        output_dir=str(folder),
        num_train=40,
        num_valid=9,
        vocab_size=SYMBOLS,
        seed=seed,
    )
    prepare(options)
    return folder


def train(data_dir: Path, run_dir: Path, **options: Any) -> Any:
    """Starts or resumes the run in `run_dir`; returns the result."""
    return trainer(data_dir, run_dir, **options).run()


def trainer(
    data_dir: Path, run_dir: Path, init_from: Path | None = None, **options: Any
) -> Trainer:
    """A trainer of the run; `options` replace training options."""
    return Trainer(run_dir, data_dir, MODEL, dataclasses.replace(TRAINING, **options), init_from)


def text_run(data_dir: Path, run_dir: Path, **options: Any) -> Run:
    """A run on text after two updates; `options` replace those of the model."""
    model = dataclasses.replace(MODEL, **options)
    model = fit_to_data(model, read_manifest(data_dir), data_dir)
    training = dataclasses.replace(TRAINING, num_updates=2, validate_every=2)
    Trainer(run_dir, data_dir, model, training).run()
    return load_run(run_dir)


def flags(data_dir: Path, run_dir: Path, **options: Any) -> list[str]:
    """The flags of `experiments.train` for the same run."""
    given = {**MODEL.to_dict(), **dataclasses.replace(TRAINING, **options).to_dict()}
    return [
        "--config=copy_20_k4",
        f"--data_dir={data_dir}",
        f"--run_dir={run_dir}",
        *(f"--{name}={value}" for name, value in given.items() if name not in FROM_DATA),
    ]


def train_with(fault: str = "") -> list[str]:
    """The command that trains, with a fault of `faulty_train` if one is given."""
    return ["tests.training.faulty_train", fault] if fault else ["experiments.train"]


def checkpoints(run_dir: Path) -> list[Path]:
    """The checkpoints of a run, from the oldest to the newest."""
    return sorted((run_dir / "checkpoints").glob("checkpoint-*.npz"))


def arrays_of(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """The variables of a checkpoint, and its record without timings."""
    with np.load(path) as archive:
        arrays = dict(archive)
    record = json.loads(arrays.pop("record").tobytes())
    return arrays, {name: value for name, value in record.items() if name not in TIMINGS}


def metrics(run_dir: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl, without timings."""
    lines = (run_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        {name: value for name, value in json.loads(line).items() if name not in TIMINGS}
        for line in lines
    ]


def assert_same_arrays(ours: Path, theirs: Path) -> None:
    """Asserts that two checkpoints are equal bit for bit, except for timings."""
    (arrays, record), (expected, expected_record) = arrays_of(ours), arrays_of(theirs)
    assert record == expected_record
    assert list(arrays.values()) and len(arrays) == len(expected)
    for (name, array), other in zip(arrays.items(), expected.values(), strict=True):
        assert array.dtype == other.dtype, name
        np.testing.assert_array_equal(array, other, err_msg=name)


def assert_same_runs(ours: Path, theirs: Path) -> None:
    """Asserts that two runs ended equal: weights, optimiser, seeds, best weights, metrics."""
    assert [path.name for path in checkpoints(ours)][-1:] == [
        path.name for path in checkpoints(theirs)
    ][-1:]
    assert_same_arrays(checkpoints(ours)[-1], checkpoints(theirs)[-1])
    assert_same_arrays(ours / "best.npz", theirs / "best.npz")
    assert metrics(ours) == metrics(theirs)
    assert not list(ours.rglob("*.tmp"))


def damage(path: Path, how: str) -> None:
    """Truncates a file in its middle, or flips a bit in its middle."""
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    if how == "truncated":
        del content[middle:]
    else:
        content[middle] ^= 0x10
    path.write_bytes(content)


def copy_run(run_dir: Path, to: Path) -> Path:
    """Copies a run, so that the copy can continue differently."""
    shutil.copytree(run_dir, to)
    return to

import json
from pathlib import Path

import numpy as np
import pytest

from seq2seq_memattn.runs.averaging import average_checkpoints
from seq2seq_memattn.runs.checkpoints import CheckpointFolder
from seq2seq_memattn.runs.directory import load_run, open_run
from tests.runs.test_directory import model_of, save_checkpoint
from tests.tolerances import as_array
from tests.training.runs import MODEL, TRAINING, arrays_of, checkpoints, damage

UPDATES = (10, 20, 30, 40)


@pytest.fixture
def run_dir(data_dir: Path, tmp_path: Path) -> Path:
    """A run with a checkpoint at each of `UPDATES`, each with different weights."""
    directory = tmp_path / "run"
    open_run(directory, data_dir, MODEL, TRAINING)
    for update in UPDATES:
        save_checkpoint(directory, update, model_of(seed=update))
    return directory


def assert_mean_of(run_dir: Path, name: str, updates: list[int]) -> None:
    """Asserts that a file holds the mean of the models of `updates`, rounded once."""
    run = load_run(run_dir, name)
    assert run.update == max(updates)
    models = [model_of(seed=update).weights for update in updates]
    for ours, *theirs in zip(run.model.weights, *models, strict=True):
        mean = np.mean([as_array(weight) for weight in theirs], axis=0)
        np.testing.assert_array_equal(as_array(ours), mean.astype(np.float32))


def test_the_mean_of_the_last_checkpoints_is_read_as_weights_of_the_run(run_dir: Path) -> None:
    done: list[int] = []
    output = run_dir / "average.npz"
    found = average_checkpoints(run_dir, 3, output, lambda: done.append(1))
    assert found == ([20, 30, 40], [])
    assert len(done) == 3
    assert_mean_of(run_dir, "average.npz", [20, 30, 40])
    arrays, record = arrays_of(output)
    assert record == {"update": 40, "averaged": [20, 30, 40]}
    assert {array.dtype for array in arrays.values()} == {np.dtype("float32")}
    assert len(arrays) == len(load_run(run_dir, "latest").model.weights)


def test_a_checkpoint_that_a_training_just_removed_is_skipped(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = checkpoints(run_dir)[2]
    paths = CheckpointFolder.paths

    def listed(folder: CheckpointFolder) -> list[Path]:
        found = paths(folder)
        removed.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(CheckpointFolder, "paths", listed)
    updates, (problem,) = average_checkpoints(run_dir, 3, run_dir / "average.npz")
    assert updates == [10, 20, 40]
    assert str(removed) in problem


def test_one_checkpoint_is_its_own_mean(run_dir: Path) -> None:
    assert average_checkpoints(run_dir, 1, run_dir / "last.npz") == ([40], [])
    assert_mean_of(run_dir, "last.npz", [40])


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_counts(run_dir: Path) -> None:
    damaged = checkpoints(run_dir)[2]
    damage(damaged, "flipped")
    updates, problems = average_checkpoints(run_dir, 3, run_dir / "average.npz")
    assert updates == [10, 20, 40]
    (problem,) = problems
    assert problem.startswith(f"{damaged}: damaged checkpoint (")
    assert_mean_of(run_dir, "average.npz", [10, 20, 40])


def test_too_few_checkpoints_are_counted_and_nothing_is_written(run_dir: Path) -> None:
    output = run_dir / "average.npz"
    folder = run_dir / "checkpoints"
    with pytest.raises(ValueError, match=f"{folder}: expected 5 checkpoints .*; there are 4 "):
        average_checkpoints(run_dir, 5, output)
    damage(checkpoints(run_dir)[0], "truncated")
    message = "expected 4 checkpoints .*; there are 3, and 1 damaged .*checkpoint-000000010.npz"
    with pytest.raises(ValueError, match=message):
        average_checkpoints(run_dir, 4, output)
    assert not output.exists()


def test_a_directory_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a run directory"):
        average_checkpoints(tmp_path, 1, tmp_path / "average.npz")
    assert json.dumps(list(tmp_path.iterdir())) == "[]"

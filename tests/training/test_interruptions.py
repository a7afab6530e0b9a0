"""Runs of `experiments.train` that are killed, stopped or damaged end like an undisturbed run."""

import itertools
import json
import math
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest

from seq2seq_memattn.training.updates.tensorflow_update import TensorFlowUpdater
from tests.disks import read_only, small_disk_of
from tests.running import run_here
from tests.training.processes import Training, logged, saved, started, wait
from tests.training.runs import (
    NUM_UPDATES,
    assert_same_runs,
    checkpoints,
    copy_run,
    damage,
    flags,
    metrics,
    train_with,
)


class Ended(NamedTuple):
    """The exit status and the output of a start."""

    status: int
    said: str


def run(
    data_dir: Path, run_dir: Path, fault: str = "", more: Sequence[str] = (), **options: Any
) -> Ended:
    """Starts a run in a process of its own, with a fault if given, and waits for its end."""
    given = [*flags(data_dir, run_dir, **options), *more]
    with started(run_dir, given, last_runs=train_with(fault)) as training:
        (status,) = training.end()
        return Ended(status, training.said())


def here(data_dir: Path, run_dir: Path, fault: str = "", **options: Any) -> Ended:
    """Like `run`, but in this process; for faults that do not kill the process."""
    given = [*flags(data_dir, run_dir, **options), "--log_every=1"]
    with mock.patch.object(
        TensorFlowUpdater, "__call__", TensorFlowUpdater.__call__
    ):  # a fault replaces it
        done = run_here(*train_with(fault), *given)
    return Ended(done.returncode, (done.stderr + done.stdout).decode())


@pytest.fixture(scope="module")
def uninterrupted(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run_dir = tmp_path_factory.mktemp("uninterrupted") / "run"
    ended = here(data_dir, run_dir)
    assert ended.status == 0, ended.said
    assert json.loads(ended.said.splitlines()[-1])["update"] == saved(run_dir) == NUM_UPDATES
    return run_dir


@pytest.mark.slow
def test_after_sigterm_a_run_goes_on_at_exactly_the_next_update(
    data_dir: Path, tmp_path: Path, uninterrupted: Path
) -> None:
    run_dir = tmp_path / "run"
    ended = here(data_dir, run_dir, "SIGTERM:4", checkpoint_minutes=30.0)
    assert ended.status == 128 + signal.SIGTERM
    (checkpoint,) = checkpoints(run_dir)
    message = f"SIGTERM: saved {checkpoint}; run the same command again to resume"
    assert message in ended.said.splitlines()
    assert "Traceback" not in ended.said
    assert saved(run_dir) == 4

    ended = here(data_dir, run_dir)
    assert ended.status == 0, ended.said
    assert "resuming from update 4" in ended.said
    assert json.loads(ended.said.splitlines()[-1])["update"] == NUM_UPDATES
    assert_same_runs(run_dir, uninterrupted)


@pytest.mark.slow
def test_a_run_killed_in_the_middle_of_a_checkpoint_goes_on_even_if_the_last_one_is_damaged(
    data_dir: Path, tmp_path: Path, uninterrupted: Path
) -> None:
    run_dir = tmp_path / "run"
    # Seven files are complete: checkpoints of six updates and the best weights of update 5.
    ended = run(data_dir, run_dir, "kill_in_write:8")
    assert ended.status == -signal.SIGKILL
    assert saved(run_dir) == 6
    assert len(list((run_dir / "checkpoints").glob(".checkpoint-000000007.npz.*.tmp"))) == 1
    damage(checkpoints(run_dir)[-1], "flipped")

    ended = run(data_dir, run_dir)
    assert ended.status == 0, ended.said
    assert "checkpoint-000000006.npz: damaged checkpoint (" in ended.said
    assert "the one before it is used" in ended.said
    assert "resuming from update 5" in ended.said
    assert_same_runs(run_dir, uninterrupted)


def wait_for_update(training: Training, update: int) -> None:
    """Waits until a run has logged an update, or has ended."""
    (process,) = training.processes
    wait(lambda: logged(training.run_dir) >= update or process.poll() is not None)


@pytest.mark.slow
def test_a_run_killed_at_twenty_random_moments_ends_like_one_that_was_not(
    data_dir: Path, tmp_path: Path
) -> None:
    run_dir, every = tmp_path / "run", tmp_path / "every"
    options: dict[str, Any] = {"num_updates": 30, "log_every": 1}
    generator = np.random.default_rng(2017)
    moments = np.sort(generator.choice(np.arange(1, 30), size=20, replace=False))
    for moment in moments:
        given = flags(data_dir, run_dir, **options)
        begun = logged(run_dir)
        with started(run_dir, given, last_runs=train_with("slow:0.1")) as training:
            wait_for_update(training, max(int(moment), min(begun + 1, 29)))
            # The kill hits the next update while it waits, is computed, or is saved.
            time.sleep(generator.uniform(0.0, 0.15))
            training.processes[0].send_signal(signal.SIGKILL)
            assert training.end() == [-signal.SIGKILL], "it ended before it could be killed"
        assert moment - 1 <= saved(run_dir) < 30
    assert run(data_dir, run_dir, **options).status == 0
    assert run(data_dir, every, **options).status == 0
    assert_same_runs(run_dir, every)
    updates = [line["update"] for line in metrics(run_dir) if line["kind"] == "train"]
    assert updates == list(range(1, 31))


@pytest.mark.slow
def test_a_run_killed_in_the_middle_of_any_file_ends_like_one_that_was_not(
    data_dir: Path, tmp_path: Path, uninterrupted: Path
) -> None:
    run_dir = tmp_path / "run"
    # Killed in the first checkpoint, in a checkpoint of a later start, and in the best weights.
    for number, expected in ((1, 0), (4, 3), (3, 5)):
        ended = run(data_dir, run_dir, f"kill_in_write:{number}")
        assert ended.status == -signal.SIGKILL
        assert expected == saved(run_dir)
    assert list(run_dir.glob(".best.npz.*.tmp"))
    ended = run(data_dir, run_dir)
    assert ended.status == 0, ended.said
    assert_same_runs(run_dir, uninterrupted)


@pytest.mark.slow
def test_on_jax_too_a_run_goes_on_after_a_signal_and_a_kill(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    run_dir, whole = tmp_path / "run", tmp_path / "whole"
    assert run(data_dir, whole).status == 0
    ended = run(data_dir, run_dir, "SIGINT:3")
    assert ended.status == 128 + signal.SIGINT
    assert saved(run_dir) == 3
    ended = run(data_dir, run_dir, "kill_in_write:5")
    assert ended.status == -signal.SIGKILL
    ended = run(data_dir, run_dir)
    assert ended.status == 0, ended.said
    assert_same_runs(run_dir, whole)


@pytest.mark.slow
def test_on_two_mirrored_devices_too_a_run_goes_on_after_a_signal(
    data_dir: Path, tmp_path: Path
) -> None:
    run_dir, whole = tmp_path / "run", tmp_path / "whole"
    more = ["--strategy=mirrored", "--num_devices=2"]
    assert run(data_dir, whole, more=more).status == 0
    ended = run(data_dir, run_dir, "SIGTERM:4", more, checkpoint_minutes=30.0)
    assert ended.status == 128 + signal.SIGTERM
    assert saved(run_dir) == 4
    assert run(data_dir, run_dir, more=more).status == 0
    assert_same_runs(run_dir, whole)


def only_error(ended: Ended) -> str:
    """The only error line of a failed start; all other output is the progress bar."""
    assert ended.status == 1
    assert "Traceback" not in ended.said
    (line,) = [line for line in ended.said.splitlines() if "error: " in line]
    assert line.startswith("error: ")
    return line


def test_bad_run_directories_give_one_line(
    data_dir: Path, tmp_path: Path, uninterrupted: Path
) -> None:
    run_dir = copy_run(uninterrupted, tmp_path / "run")
    error = only_error(here(data_dir, run_dir, clip_norm=3.0))
    assert error.endswith("a run with another configuration: clip_norm was 1.0, is 3.0")
    damage(checkpoints(run_dir)[-1], "flipped")
    ended = here(data_dir, run_dir)
    assert ended.status == 0
    assert f"checkpoint-0000000{NUM_UPDATES}.npz: damaged checkpoint (" in ended.said
    assert "the one before it is used" in ended.said
    assert_same_runs(run_dir, uninterrupted)
    for path in checkpoints(run_dir):
        damage(path, "truncated")
    error = only_error(here(data_dir, run_dir))
    assert "no checkpoint in" in error and "damaged checkpoint" in error


def test_losses_that_are_not_finite_end_in_one_line_with_the_last_good_checkpoint(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update, numbers = TensorFlowUpdater.__call__, itertools.count(1)

    def spoilt(updater: Any, *arguments: Any) -> Any:
        result = update(updater, *arguments)
        is_sound = next(numbers) < 3
        return result if is_sound else result._replace(loss=math.nan, is_applied=False)

    monkeypatch.setattr(TensorFlowUpdater, "__call__", spoilt)
    error = only_error(here(data_dir, tmp_path / "run", max_nan_updates=3))
    assert "3 updates in a row up to update 5 had NaN or infinite loss" in error
    assert error.endswith(f"last good checkpoint: {checkpoints(tmp_path / 'run')[-1]}")


# The disk holds one and a half checkpoints.
@pytest.mark.slow
@small_disk_of(2**17)
def test_a_full_disk_gives_one_line_and_the_next_start_goes_on(
    data_dir: Path, tmp_path: Path, small_disk: Path, uninterrupted: Path
) -> None:
    run_dir = small_disk / "run"
    error = only_error(here(data_dir, run_dir))
    assert error.endswith(".npz: No space left on device")
    update = saved(run_dir)
    assert 0 < update < NUM_UPDATES
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(run_dir, elsewhere)
    ended = here(data_dir, elsewhere)
    assert ended.status == 0, ended.said
    assert f"resuming from update {update}" in ended.said
    assert_same_runs(elsewhere, uninterrupted)


@pytest.mark.slow
@small_disk_of(2**24)
def test_a_read_only_folder_gives_one_line_and_the_run_goes_on_when_it_can_be_written(
    data_dir: Path, small_disk: Path, uninterrupted: Path
) -> None:
    run_dir = small_disk / "run"
    assert here(data_dir, run_dir, "SIGTERM:4").status == 128 + signal.SIGTERM
    with read_only(small_disk):
        assert only_error(here(data_dir, run_dir)).endswith("Read-only file system")
    ended = here(data_dir, run_dir)
    assert ended.status == 0, ended.said
    assert "resuming from update 4" in ended.said
    assert_same_runs(run_dir, uninterrupted)

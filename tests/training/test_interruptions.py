"""Runs that are killed, stopped and damaged end like one that was not: `experiments.train`."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.commands import ROOT
from tests.disks import small_disk_of
from tests.training.runs import (
    NUM_UPDATES,
    arrays_of,
    assert_same_runs,
    checkpoints,
    damage,
    flags,
    metrics,
)

SECONDS = 300  # that a start may take on a machine that does other things too


class Ended(NamedTuple):
    """What came of a start."""

    status: int
    stdout: str
    stderr: str


class Start:
    """A start of a run in a process of its own, plain or with a fault; killed when the block ends.

    Its output goes to files: nobody reads a pipe while the run is on.
    """

    def __init__(
        self,
        data_dir: Path,
        run_dir: Path,
        fault: str = "",
        backend: str = "tensorflow",
        **options: Any,
    ) -> None:
        module = ["tests.training.faulty_train", fault] if fault else ["experiments.train"]
        run_dir.parent.mkdir(parents=True, exist_ok=True)
        self._stdout = run_dir.with_suffix(".stdout")
        self._stderr = run_dir.with_suffix(".stderr")
        with open(self._stdout, "wb") as stdout, open(self._stderr, "wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *module, *flags(data_dir, run_dir, **options)],
                cwd=ROOT,
                env={**os.environ, "KERAS_BACKEND": backend},
                stdout=stdout,
                stderr=stderr,
            )

    def __enter__(self) -> "Start":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def wait(self) -> Ended:
        status = self.process.wait(timeout=SECONDS)
        return Ended(status, self._stdout.read_text(), self._stderr.read_text())


def run(*arguments: Any, **options: Any) -> Ended:
    with Start(*arguments, **options) as start:
        return start.wait()


def last_update(run_dir: Path) -> int:
    """The update of the last checkpoint; 0 if there is none."""
    found = checkpoints(run_dir)
    return int(arrays_of(found[-1])[1]["update"]) if found else 0


@pytest.fixture(scope="module")
def uninterrupted(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run_dir = tmp_path_factory.mktemp("uninterrupted") / "run"
    ended = run(data_dir, run_dir)
    assert ended.status == 0, ended.stderr
    assert json.loads(ended.stdout)["update"] == last_update(run_dir) == NUM_UPDATES
    return run_dir


@pytest.mark.slow
def test_after_sigterm_a_run_goes_on_at_exactly_the_next_update(
    data_dir: Path, tmp_path: Path, uninterrupted: Path
) -> None:
    run_dir = tmp_path / "run"
    ended = run(data_dir, run_dir, "SIGTERM:4", checkpoint_minutes=30.0)
    assert ended.status == 128 + signal.SIGTERM
    assert ended.stdout == ""
    (checkpoint,) = checkpoints(run_dir)
    message = f"SIGTERM: saved {checkpoint}; the same command goes on from there"
    assert message in ended.stderr.splitlines()
    assert "Traceback" not in ended.stderr
    assert last_update(run_dir) == 4

    ended = run(data_dir, run_dir)
    assert ended.status == 0, ended.stderr
    assert "going on from update 4" in ended.stderr
    assert json.loads(ended.stdout)["update"] == NUM_UPDATES
    assert_same_runs(run_dir, uninterrupted)


@pytest.mark.slow
def test_a_run_killed_in_the_middle_of_a_checkpoint_goes_on_even_if_the_last_one_is_damaged(
    data_dir: Path, tmp_path: Path, uninterrupted: Path
) -> None:
    run_dir = tmp_path / "run"
    # Seven files are whole: the checkpoints of six updates, and the best weights of the fifth.
    ended = run(data_dir, run_dir, "kill_in_write:8")
    assert ended.status == -signal.SIGKILL
    assert last_update(run_dir) == 6
    assert len(list((run_dir / "checkpoints").glob(".checkpoint-000000007.npz.*.tmp"))) == 1
    damage(checkpoints(run_dir)[-1], "flipped")

    ended = run(data_dir, run_dir)
    assert ended.status == 0, ended.stderr
    assert "checkpoint-000000006.npz: damaged checkpoint (" in ended.stderr
    assert "the one before it is used" in ended.stderr
    assert "going on from update 5" in ended.stderr
    assert_same_runs(run_dir, uninterrupted)


@pytest.mark.slow
def test_a_run_killed_at_twenty_random_moments_ends_like_one_that_was_not(
    data_dir: Path, tmp_path: Path
) -> None:
    run_dir, every = tmp_path / "run", tmp_path / "every"
    options: dict[str, Any] = {"num_updates": 30, "log_every": 1}
    generator = np.random.default_rng(2017)
    moments = np.sort(generator.choice(np.arange(1, 30), size=20, replace=False))
    for moment in moments:
        with Start(data_dir, run_dir, "slow:0.1", **options) as start:
            wait_for_update(run_dir, int(moment), start.process)
            # While the next update waits, is computed, or its checkpoint written.
            time.sleep(generator.uniform(0.0, 0.15))
            start.process.send_signal(signal.SIGKILL)
            assert start.wait().status == -signal.SIGKILL
        assert moment - 1 <= last_update(run_dir) < 30
    assert run(data_dir, run_dir, **options).status == 0
    assert run(data_dir, every, **options).status == 0
    assert_same_runs(run_dir, every)
    updates = [line["update"] for line in metrics(run_dir) if line["kind"] == "train"]
    assert updates == list(range(1, 31))


def wait_for_update(run_dir: Path, update: int, process: "subprocess.Popen[bytes]") -> None:
    """Waits until the run has logged an update."""
    path, deadline = run_dir / "metrics.jsonl", time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, "the run ended before it could be killed"
        if path.exists() and f'"update": {update},' in path.read_text():
            return
        time.sleep(0.005)
    pytest.fail(f"no update {update} within {SECONDS} s")


@pytest.mark.slow
def test_a_run_killed_in_the_middle_of_any_file_ends_like_one_that_was_not(
    data_dir: Path, tmp_path: Path, uninterrupted: Path
) -> None:
    run_dir = tmp_path / "run"
    # In the first checkpoint, in one of a later start, and in the best weights.
    for number, expected in ((1, 0), (4, 3), (3, 5)):
        ended = run(data_dir, run_dir, f"kill_in_write:{number}")
        assert ended.status == -signal.SIGKILL
        assert expected == (last_update(run_dir) if checkpoints(run_dir) else 0)
    assert list(run_dir.glob(".best.npz.*.tmp"))
    ended = run(data_dir, run_dir)
    assert ended.status == 0, ended.stderr
    assert_same_runs(run_dir, uninterrupted)


@pytest.mark.slow
def test_on_jax_too_a_run_goes_on_after_a_signal_and_a_kill(data_dir: Path, tmp_path: Path) -> None:
    run_dir, whole = tmp_path / "run", tmp_path / "whole"
    assert run(data_dir, whole, backend="jax").status == 0
    ended = run(data_dir, run_dir, "SIGINT:3", backend="jax")
    assert ended.status == 128 + signal.SIGINT
    assert last_update(run_dir) == 3
    ended = run(data_dir, run_dir, "kill_in_write:5", backend="jax")
    assert ended.status == -signal.SIGKILL
    ended = run(data_dir, run_dir, backend="jax")
    assert ended.status == 0, ended.stderr
    assert_same_runs(run_dir, whole)


def only_error(ended: Ended) -> str:
    """The one line of a start that failed; everything else is the progress bar."""
    assert ended.status == 1
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    (line,) = [line for line in ended.stderr.splitlines() if "error: " in line]
    assert line.startswith("error: ")
    return line


@pytest.mark.slow
def test_bad_run_directories_give_one_line(data_dir: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    assert run(data_dir, run_dir, num_updates=2).status == 0
    error = only_error(run(data_dir, run_dir, clip_norm=3.0))
    assert error.endswith("a run of another configuration: clip_norm was 1.0, is 3.0")
    for path in checkpoints(run_dir):
        damage(path, "truncated")
    error = only_error(run(data_dir, run_dir))
    assert "no checkpoint in" in error and "damaged checkpoint" in error


# One checkpoint and a half
@small_disk_of(2**17)
@pytest.mark.slow
def test_a_full_disk_gives_one_line_and_the_next_start_goes_on(
    data_dir: Path, tmp_path: Path, small_disk: Path, uninterrupted: Path
) -> None:
    run_dir = small_disk / "run"
    error = only_error(run(data_dir, run_dir))
    assert error.endswith(".npz: No space left on device")
    update = last_update(run_dir)
    assert 0 < update < NUM_UPDATES
    elsewhere = tmp_path / "elsewhere"
    subprocess.run(["cp", "-r", str(run_dir), str(elsewhere)], check=True)
    ended = run(data_dir, elsewhere)
    assert ended.status == 0, ended.stderr
    assert f"going on from update {update}" in ended.stderr
    assert_same_runs(elsewhere, uninterrupted)

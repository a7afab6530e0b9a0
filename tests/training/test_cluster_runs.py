"""Several processes train like one, and nothing is lost when a process is lost."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.commands.shared.cli import EXIT_TRY_AGAIN
from tests.running import ROOT, run_here
from tests.training import processes
from tests.training.processes import PATIENCE, Training, saved, started, wait
from tests.training.runs import (
    NUM_UPDATES,
    arrays_of,
    assert_same_arrays,
    checkpoints,
    copy_run,
    flags,
    metrics,
    train,
    train_with,
)

# Plain gradient descent with a clip that some updates reach, so a wrong gradient scale shows.
EXACT: dict[str, Any] = {
    "optimizer": "sgd",
    "learning_rate": 1.0,
    "clip_norm": 0.3,
    "num_updates": 10,
    "log_every": 1,
    "batch_size": 7,
}
WITHOUT_DROPOUT = "--dropout=0"


def arguments_of(
    data_dir: Path, run_dir: Path, more: Sequence[str] = (), **options: Any
) -> list[str]:
    """The options of each process of a cluster."""
    return [*flags(data_dir, run_dir, **options), "--peer_timeout=10", *more]


def cluster_of(
    data_dir: Path, run_dir: Path, jobs: dict[str, int], fault: str = "", **options: Any
) -> AbstractContextManager[Training]:
    """Starts a training of several processes; the last one has the fault, if one is given."""
    given = arguments_of(data_dir, run_dir, **options)
    return started(run_dir, given, jobs, last_runs=train_with(fault))


def finish(data_dir: Path, run_dir: Path, jobs: dict[str, int], **options: Any) -> str:
    """Runs a cluster to its end; returns the chief's output."""
    return processes.finish(run_dir, arguments_of(data_dir, run_dir, **options), jobs)


def figures(run_dir: Path, name: str) -> list[float]:
    """The figure with this name that every update logged."""
    return [line[name] for line in metrics(run_dir) if line["kind"] == "train"]


def assert_close_updates(ours: Path, theirs: Path) -> None:
    """Compares norms before the clip, which would hide a wrong scale, and weights after it."""
    for name in ("loss", "gradient_norm"):
        np.testing.assert_allclose(figures(ours, name), figures(theirs, name), rtol=1e-5)
    (found, _), (expected, _) = (arrays_of(checkpoints(one)[-1]) for one in (ours, theirs))
    # By order, not by name: Keras numbers optimisers, so names differ between processes.
    for (name, array), one in zip(expected.items(), found.values(), strict=True):
        if "seed" not in name:  # each process has its own random generators
            largest = np.abs(array.astype(np.float64)).max(initial=0.0)
            np.testing.assert_allclose(one, array, rtol=0, atol=1e-5 * largest)


def assert_close_runs(ours: Path, theirs: Path) -> None:
    assert_close_updates(ours, theirs)
    for name in ("bleu", "loss"):
        expected = [line[name] for line in metrics(theirs) if line["kind"] == "valid"]
        found = [line[name] for line in metrics(ours) if line["kind"] == "valid"]
        np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.fixture(scope="module")
def alone(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one process."""
    run_dir = tmp_path_factory.mktemp("alone") / "run"
    done = run_here("experiments.train", *flags(data_dir, run_dir, **EXACT), WITHOUT_DROPOUT)
    assert done.returncode == 0, done.stderr
    return run_dir


@pytest.mark.slow
def test_two_workers_do_the_ten_updates_of_one(data_dir: Path, tmp_path: Path, alone: Path) -> None:
    finish(data_dir, tmp_path / "run", {"worker": 2}, more=(WITHOUT_DROPOUT,), **EXACT)
    assert len(figures(tmp_path / "run", "loss")) == 10
    clipped = [norm > EXACT["clip_norm"] for norm in figures(alone, "gradient_norm")]
    assert any(clipped) and not all(clipped)
    assert_close_runs(tmp_path / "run", alone)


@pytest.mark.slow
def test_mirrored_devices_and_parts_of_batches_do_the_updates_of_one(
    data_dir: Path, tmp_path: Path, alone: Path
) -> None:
    for name, more in (
        ("mirrored", ["--strategy=mirrored", "--num_devices=2"]),
        ("parts", ["--accumulate=3"]),
        ("both", ["--strategy=mirrored", "--num_devices=2", "--accumulate=2"]),
    ):
        run_dir = tmp_path / name
        given = [*flags(data_dir, run_dir, **EXACT), WITHOUT_DROPOUT, *more]
        command = [sys.executable, "-m", "experiments.train", *given]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        assert_close_runs(run_dir, alone)


@pytest.fixture(scope="module")
def guided(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """Options of a run with a teacher, and this run of one process."""
    folder = tmp_path_factory.mktemp("guided")
    given = flags(data_dir, folder / "teacher", num_updates=4, validate_every=4)
    done = run_here("experiments.train", *given, "--attention=bahdanau")
    assert done.returncode == 0, done.stderr
    options = {
        **EXACT,
        "teacher": str(folder / "teacher"),
        # Large, because two models that have hardly learned read nearly alike.
        "alignment_weight": 1000.0,
        "context_weight": 100.0,
    }
    done = run_here(
        "experiments.train", *flags(data_dir, folder / "alone", **options), WITHOUT_DROPOUT
    )
    assert done.returncode == 0, done.stderr
    return options, folder / "alone"


@pytest.mark.slow
def test_a_teacher_guides_two_workers_and_two_devices_as_it_guides_one(
    data_dir: Path, tmp_path: Path, alone: Path, guided: tuple[dict[str, Any], Path]
) -> None:
    options, one = guided
    assert figures(one, "loss") != pytest.approx(figures(alone, "loss"), rel=1e-3)
    finish(data_dir, tmp_path / "two", {"worker": 2}, more=(WITHOUT_DROPOUT,), **options)
    assert_close_runs(tmp_path / "two", one)
    given = [*flags(data_dir, tmp_path / "mirrored", **options), WITHOUT_DROPOUT]
    command = [sys.executable, "-m", "experiments.train", *given]
    command += ["--strategy=mirrored", "--num_devices=2"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert_close_runs(tmp_path / "mirrored", one)


@pytest.mark.slow
def test_a_teacher_guides_parameter_servers(
    data_dir: Path, tmp_path: Path, guided: tuple[dict[str, Any], Path]
) -> None:
    losses = []
    for name in ("taught", "alone"):
        teaching = ("teacher", "alignment_weight", "context_weight")
        options = {n: x for n, x in guided[0].items() if name == "taught" or n not in teaching}
        options |= {"learning_rate": 1e-4}  # the first losses are those of the same weights
        jobs = {"chief": 1, "worker": 2, "ps": 1}
        with cluster_of(data_dir, tmp_path / name, jobs, **options) as cluster:
            assert cluster.processes[0].wait(timeout=PATIENCE) == 0, cluster.said()
            assert cluster.end() == [0, 0, 0, 0]
        found = [loss for loss in figures(tmp_path / name, "loss") if loss]
        losses.append(np.mean(found))
    assert losses[0] > losses[1] + 0.05


@pytest.mark.slow
def test_a_checkpoint_goes_on_with_another_number_of_workers(
    data_dir: Path, tmp_path: Path, alone: Path
) -> None:
    run_dir = tmp_path / "run"
    for count, until in ((2, 3), (3, 5), (1, 10)):
        options = {**EXACT, "num_updates": until}
        finish(data_dir, run_dir, {"worker": count}, more=(WITHOUT_DROPOUT,), **options)
        assert saved(run_dir) == until
    assert_close_updates(run_dir, alone)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [2, 0], ids=["a worker", "the chief"])
def test_when_one_of_four_is_killed_the_others_say_which_and_a_new_start_goes_on(
    data_dir: Path, tmp_path: Path, victim: int
) -> None:
    run_dir, expected = tmp_path / "run", tmp_path / "expected"
    finish(data_dir, expected, {"worker": 4})
    with cluster_of(data_dir, run_dir, {"worker": 4}, fault="slow:0.3") as cluster:
        wait(lambda: len(checkpoints(run_dir)) >= 3)
        cluster.processes[victim].send_signal(signal.SIGKILL)
        killed = time.monotonic()
        statuses = cluster.end()
        assert time.monotonic() - killed < 60
        others = [status for i, status in enumerate(statuses) if i != victim]
        assert statuses[victim] == -signal.SIGKILL
        assert others == [EXIT_TRY_AGAIN] * 3, [cluster.said(i) for i in range(4)]
        said = [cluster.said(i) for i in range(4) if i != victim]
    assert any(f"error: worker {victim} (localhost:" in text for text in said)
    assert all("resume from the last checkpoint" in text for text in said)
    begun = saved(run_dir)
    assert 0 < begun < NUM_UPDATES
    assert f"resuming from update {begun}" in finish(data_dir, run_dir, {"worker": 4})
    assert_same_arrays(checkpoints(run_dir)[-1], checkpoints(expected)[-1])


@pytest.mark.slow
def test_a_worker_that_is_silent_for_too_long_is_given_up(data_dir: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    with cluster_of(data_dir, run_dir, {"worker": 3}, fault="slow:0.3") as cluster:
        wait(lambda: len(checkpoints(run_dir)) >= 2)
        cluster.processes[1].send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        others = [cluster.processes[i].wait(timeout=PATIENCE) for i in (0, 2)]
        # --peer_timeout is 10 s.
        assert 5 < time.monotonic() - stopped < 60
        assert others == [EXIT_TRY_AGAIN] * 2, [cluster.said(i) for i in (0, 2)]
        assert "error: worker 1 (localhost:" in cluster.said(0) + cluster.said(2)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_one_worker_stops_all_at_the_same_update(
    number: signal.Signals, data_dir: Path, tmp_path: Path
) -> None:
    run_dir, expected = tmp_path / "run", tmp_path / "expected"
    finish(data_dir, expected, {"worker": 2})
    options = {"checkpoint_minutes": 30.0}
    with cluster_of(
        data_dir, run_dir, {"worker": 2}, fault=f"{number.name}:4", **options
    ) as cluster:
        assert cluster.end() == [128 + number] * 2, cluster.said()
        assert f"{number.name}: saved {checkpoints(run_dir)[0]}" in cluster.said(0)
        assert f"{number.name}: the chief saved a checkpoint" in cluster.said(1)
    assert saved(run_dir) == 4
    assert "resuming from update 4" in finish(data_dir, run_dir, {"worker": 2})
    assert_same_arrays(checkpoints(run_dir)[-1], checkpoints(expected)[-1])


@pytest.mark.slow
def test_a_chief_with_parameter_servers_goes_on_without_one_of_its_workers(
    data_dir: Path, tmp_path: Path
) -> None:
    run_dir, jobs = tmp_path / "run", {"chief": 1, "worker": 2, "ps": 1}
    options = {"num_updates": 300, "validate_every": 300, "checkpoint_minutes": 0.0}
    with cluster_of(data_dir, run_dir, jobs, **options) as cluster:
        wait(lambda: len(checkpoints(run_dir)) >= 1)
        begun = saved(run_dir)
        cluster.processes[1].send_signal(signal.SIGKILL)
        assert cluster.processes[0].wait(timeout=PATIENCE) == 0, cluster.said()
    assert 0 < begun < saved(run_dir) == 300


@pytest.mark.slow
def test_half_precision_on_several_devices_in_parts_trains_and_goes_on(
    data_dir: Path, tmp_path: Path
) -> None:
    run_dir = tmp_path / "run"
    more = ["--strategy=mirrored", "--num_devices=2", "--accumulate=2"]
    for until in (10, 40):
        options = {"num_updates": until, "learning_rate": 0.02, "log_every": 1}
        command = [*flags(data_dir, run_dir, **options), "--precision=mixed_float16", *more]
        subprocess.run(
            [sys.executable, "-m", "experiments.train", *command],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        assert saved(run_dir) == until
    losses = [loss for loss in figures(run_dir, "loss") if loss is not None]
    assert len(losses) >= 30  # skipped updates only lower the scale of the loss
    assert np.mean(losses[-5:]) < 0.9 * np.mean(losses[:5])


@pytest.mark.slow
def test_parameter_servers_train_validate_and_go_on(data_dir: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    jobs = {"chief": 1, "worker": 2, "ps": 1}
    for until in (6, 15):
        options = {"num_updates": until, "learning_rate": 0.02, "log_every": 1}
        with cluster_of(data_dir, run_dir, jobs, **options) as cluster:
            assert cluster.processes[0].wait(timeout=PATIENCE) == 0, cluster.said()
            assert json.loads(cluster.said().splitlines()[-1])["update"] == until
            # Workers and servers notice that the chief has ended.
            assert cluster.end() == [0, 0, 0, 0], [cluster.said(i) for i in (1, 2, 3)]
    assert "resuming from update 6" in cluster.said()
    lines = metrics(run_dir)
    told = [line["loss"] for line in lines if line["kind"] == "train" and line["loss"]]
    assert told[-1] < 0.95 * told[0]
    assert [line["update"] for line in lines if line["kind"] == "valid"] == [5, 6, 10, 15]
    # Other runs can use the weights.
    options = {"num_updates": 16, "learning_rate": 0.02}
    assert train(data_dir, copy_run(run_dir, tmp_path / "copy"), **options).update == 16


ASYNCHRONOUS = {"chief": 1, "worker": 2, "ps": 1}
ENDLESS: dict[str, Any] = {"num_updates": 100_000, "validate_every": 100_000}


@pytest.mark.slow
def test_a_signal_to_all_lets_parameter_servers_help_the_chief_to_save(
    data_dir: Path, tmp_path: Path
) -> None:
    run_dir = tmp_path / "run"
    with cluster_of(data_dir, run_dir, ASYNCHRONOUS, **ENDLESS) as cluster:
        wait(lambda: len(checkpoints(run_dir)) >= 2)
        for process in reversed(cluster.processes):  # servers first
            process.send_signal(signal.SIGTERM)
        assert cluster.end() == [143] * 4, [cluster.said(i) for i in range(4)]
        assert f"SIGTERM: saved {checkpoints(run_dir)[-1]}" in cluster.said()


@pytest.mark.slow
def test_those_that_served_a_killed_chief_end_and_say_so(data_dir: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    with cluster_of(data_dir, run_dir, ASYNCHRONOUS, **ENDLESS) as cluster:
        wait(lambda: len(checkpoints(run_dir)) >= 2)
        cluster.processes[0].send_signal(signal.SIGKILL)
        assert cluster.end() == [-signal.SIGKILL, 0, 0, 0]
        for index in (1, 2, 3):
            assert "has ended or was lost; see its output" in cluster.said(index)


@pytest.mark.slow
def test_a_chief_that_lost_all_workers_ends_and_says_so(data_dir: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    with cluster_of(data_dir, run_dir, ASYNCHRONOUS, **ENDLESS) as cluster:
        wait(lambda: len(checkpoints(run_dir)) >= 2)
        for index in (1, 2):
            cluster.processes[index].send_signal(signal.SIGKILL)
        assert cluster.processes[0].wait(timeout=PATIENCE) == EXIT_TRY_AGAIN, cluster.said()
        assert re.search(r"worker 0 .*, worker 1 .* did not answer for 10 s", cluster.said())
        # The parameter server noticed either the lost workers or the end of the chief.
        status, said = cluster.processes[3].wait(timeout=PATIENCE), cluster.said(3)
        reasons = {
            0: "has ended or was lost; see its output",
            EXIT_TRY_AGAIN: "did not answer for 10 s",
        }
        assert reasons[status] in said
    assert saved(run_dir) > 0  # a checkpoint is left

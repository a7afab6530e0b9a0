"""Trainings in processes of their own, alone or as a cluster, and what they leave."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.run_files import last_checkpoint, read_curve
from seq2seq_memattn.commands.launch_local import free_addresses, tf_config

LOOK_EVERY = 0.01  # seconds
PATIENCE = 300.0  # seconds for anything that is waited for
TIMINGS = ("seconds", "waiting", "memory")  # beginnings of names in a checkpoint's record


class Training:
    """Processes of `experiments.train`, alone or as a cluster; each writes into a file.

    Args:
        run_dir: of the run.
        arguments: options of `train` but `--run_dir`.
        jobs: processes of the cluster by kind of task; without them it is one alone.
        logs_dir: where the files are, if not beside the run.
        last_runs: what the last process runs behind `python -m` in place of `experiments.train`: a
            module that takes the same options, and what stands before them.
    """

    def __init__(
        self,
        run_dir: Path,
        arguments: Sequence[str],
        jobs: dict[str, int] | None = None,
        logs_dir: Path | None = None,
        last_runs: Sequence[str] = ("experiments.train",),
    ) -> None:
        self.run_dir = run_dir
        logs_dir = logs_dir or run_dir.parent
        self._logs: list[Path] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.addresses = free_addresses(jobs or {})
        options = [*arguments, f"--run_dir={run_dir}", "--log_every=1"]
        logs_dir.mkdir(parents=True, exist_ok=True)
        self._before = logged(run_dir)
        tasks = [(job, task) for job, hosts in self.addresses.items() for task in range(len(hosts))]
        tasks = tasks or [("", 0)]
        for job, task in tasks:
            environment = dict(os.environ)
            if job:
                environment["TF_CONFIG"] = tf_config(self.addresses, job, task)
            self._logs.append(logs_dir / f"{run_dir.name}_{job}{task}.log")
            with open(self._logs[-1], "wb") as stream:
                runs = last_runs if (job, task) == tasks[-1] else ["experiments.train"]
                command = [sys.executable, "-m", *runs, *options]
                self.processes.append(
                    subprocess.Popen(command, env=environment, stdout=stream, stderr=stream)
                )

    def wait_for_an_update(self) -> None:
        """Returns when this start has logged an update, or its first process has ended."""
        wait(lambda: logged(self.run_dir) > self._before or self.processes[0].poll() is not None)

    def end(self) -> list[int]:
        """The exit statuses, when all have ended."""
        return [process.wait(PATIENCE) for process in self.processes]

    def said(self, index: int = 0) -> str:
        """What a process wrote."""
        return self._logs[index].read_text(encoding="utf-8")

    def kill(self) -> None:
        """Ends all that are left."""
        for process in self.processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def started(*arguments: Any, **options: Any) -> Iterator[Training]:
    """A `Training` that does not outlive the block."""
    training = Training(*arguments, **options)
    try:
        yield training
    finally:
        training.kill()


def wait(ready: Callable[[], bool]) -> None:
    """Returns when it is; raises ValueError if that takes too long."""
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            raise ValueError(f"a training did not get on for {PATIENCE:.0f} s")
        time.sleep(LOOK_EVERY)


def logged(run_dir: Path) -> int:
    """The last update that a run logged; a line that is being written does not count."""
    with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
        return max((line["update"] for line in read_curve(run_dir)), default=0)
    return 0


def saved(run_dir: Path) -> int:
    """The update of a run's last checkpoint; 0 without one."""
    return int(last_checkpoint(run_dir)[1]["update"])


def is_same(run_dir: Path, expected: Path) -> bool:
    """Whether two runs ended alike: weights, optimiser, random generators, position, scores."""
    (ours, record), (theirs, its_record) = last_checkpoint(run_dir), last_checkpoint(expected)
    return (
        _without_timings(record) == _without_timings(its_record)
        and len(ours) == len(theirs)
        and all(map(np.array_equal, ours.values(), theirs.values()))
    )


def _without_timings(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if not name.startswith(TIMINGS)}


def finish(run_dir: Path, arguments: Sequence[str], jobs: dict[str, int] | None = None) -> str:
    """Trains a run to its end; what its first process wrote."""
    with started(run_dir, arguments, jobs) as training:
        if any(training.end()):
            raise ValueError(f"a training failed: {training.said().splitlines()[-1]}")
        return training.said()

"""Trainings in processes of their own, alone or as a cluster."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from seq2seq_memattn.commands.launch_local import free_addresses, tf_config
from tests.training.runs import checkpoints

LOOK_EVERY = 0.01  # seconds
PATIENCE = 300.0  # seconds to wait for anything


class Training:
    """Processes of `experiments.train`, a single one or a cluster; each logs to a file.

    Args:
        run_dir: the run's directory.
        arguments: options of `train` except `--run_dir`.
        jobs: number of processes of the cluster by kind of task; None: a single process.
        last_runs: arguments of `python -m` for the last process, before the options:
            `experiments.train`, or a module that takes the same options.
    """

    def __init__(
        self,
        run_dir: Path,
        arguments: Sequence[str],
        jobs: dict[str, int] | None = None,
        last_runs: Sequence[str] = ("experiments.train",),
    ) -> None:
        self.run_dir = run_dir
        self._logs: list[Path] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        options = [*arguments, f"--run_dir={run_dir}", "--log_every=1"]
        run_dir.parent.mkdir(parents=True, exist_ok=True)
        addresses = free_addresses(jobs or {})
        tasks = [(job, task) for job, hosts in addresses.items() for task in range(len(hosts))]
        tasks = tasks or [("", 0)]
        for job, task in tasks:
            environment = dict(os.environ)
            if job:
                environment["TF_CONFIG"] = tf_config(addresses, job, task)
            self._logs.append(run_dir.parent / f"{run_dir.name}_{job}{task}.log")
            with open(self._logs[-1], "wb") as stream:
                runs = last_runs if (job, task) == tasks[-1] else ["experiments.train"]
                command = [sys.executable, "-m", *runs, *options]
                self.processes.append(
                    subprocess.Popen(command, env=environment, stdout=stream, stderr=stream)
                )

    def end(self) -> list[int]:
        """Waits until all processes have ended; returns their exit statuses."""
        return [process.wait(PATIENCE) for process in self.processes]

    def said(self, index: int = 0) -> str:
        """The output of a process."""
        return self._logs[index].read_text(encoding="utf-8")

    def kill(self) -> None:
        """Kills the processes that are still running."""
        for process in self.processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def started(*arguments: Any, **options: Any) -> Iterator[Training]:
    """A `Training` that is killed at the end of the block."""
    training = Training(*arguments, **options)
    try:
        yield training
    finally:
        training.kill()


def wait(ready: Callable[[], bool]) -> None:
    """Waits until `ready()` is true; raises TimeoutError if that takes too long."""
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"a training did not get on for {PATIENCE:.0f} s")
        time.sleep(LOOK_EVERY)


def logged(run_dir: Path) -> int:
    """The last update that a run logged; an incomplete line does not count."""
    with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
        lines = (run_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return max((json.loads(line)["update"] for line in lines), default=0)
    return 0


def saved(run_dir: Path) -> int:
    """The update of a run's last checkpoint; 0 without one."""
    return max((int(path.stem.partition("-")[2]) for path in checkpoints(run_dir)), default=0)


def finish(run_dir: Path, arguments: Sequence[str], jobs: dict[str, int]) -> str:
    """Trains a run to its end; returns the output of its first process."""
    with started(run_dir, arguments, jobs) as training:
        assert not any(training.end()), training.said()
        return training.said()

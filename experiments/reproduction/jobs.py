"""Runs `python -m` commands in separate processes, one after another or several at a time."""

import concurrent.futures
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Self, TypeVar

from seq2seq_memattn.commands.shared.processes import WITHOUT_BARS, lines_under
from seq2seq_memattn.compute.hardware import num_cores

T = TypeVar("T")
R = TypeVar("R")


class Commands:
    """Runs commands. They get SIGTERM for SIGTERM and SIGINT, so that trainings save a checkpoint.

    A context manager for the main thread, because only the main thread may set signal handlers. If
    commands run one at a time, they write to this process's standard error. Commands that run at
    the same time share the cores, and each line they write is shown under the command's name,
    without progress bars.

    Args:
        jobs: int > 0. How many commands run at a time.
    """

    def __init__(self, jobs: int = 1) -> None:
        self._jobs = jobs
        self._running: list[subprocess.Popen[str]] = []
        self._caught = 0

    def __enter__(self) -> Self:
        self._before = {
            number: signal.signal(number, self._hand_on)
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hand_on(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._caught = number
        # Never SIGINT: a terminal also sends Ctrl-C to the commands, and a second SIGINT ends a
        # training without a checkpoint.
        for process in list(self._running):
            process.terminate()

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Does work for each item, `jobs` at a time; returns the results in order.

        After an error or a signal, no further work starts. After an error, running work finishes.

        Raises:
            Exception: the error of the first item whose work failed.
            SystemExit: after a signal.
        """
        if self._jobs == 1:
            results = [work(item) for item in items]
        else:
            results = self._side_by_side(work, items)
        self._exit_if_caught()
        return results

    def _side_by_side(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        with concurrent.futures.ThreadPoolExecutor(self._jobs) as pool:
            futures = [pool.submit(work, item) for item in items]

            def cancel_rest(done: concurrent.futures.Future[R]) -> None:
                if not done.cancelled() and done.exception():
                    for future in futures:
                        future.cancel()

            for future in futures:
                future.add_done_callback(cancel_rest)  # runs before the thread takes more work
        for future in futures:
            if not future.cancelled() and (error := future.exception()):
                raise error
        return [future.result() for future in futures]

    def run(self, arguments: Sequence[str], name: str = "") -> dict[str, Any]:
        """Runs `python -m` with its progress on standard error; returns its JSON line.

        Args:
            arguments: the module and its arguments.
            name: name under which its lines are shown if several commands run at a time.

        Raises:
            ValueError: if the command fails; the command itself has printed the reason.
            SystemExit: if a signal ended the command or arrived before it started.
        """
        self._exit_if_caught()
        command = [sys.executable, "-m", *arguments]
        if self._jobs == 1:
            process, output = self._finish(command)
        else:
            with lines_under(name) as stderr:
                environment = {**os.environ, **WITHOUT_BARS, **self._share()}
                process, output = self._finish(command, stderr=stderr, env=environment)
        self._exit_if_caught()  # after a signal, nothing that follows is wanted any more
        if process.returncode in (128 + signal.SIGTERM, 128 + signal.SIGINT):
            raise SystemExit(process.returncode)
        if process.returncode:
            raise ValueError(f"{arguments[0]} failed with exit status {process.returncode}")
        return json.loads(output.strip().split("\n")[-1])

    def _finish(self, command: list[str], **options: Any) -> tuple[subprocess.Popen[str], str]:
        """Runs a command to its end; returns its process and its standard output."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
        self._running.append(process)
        try:
            if self._caught:  # the signal arrived while the process started
                process.terminate()
            output, _ = process.communicate()
        finally:
            self._running.remove(process)
        return process, output

    def _exit_if_caught(self) -> None:
        if self._caught:
            raise SystemExit(128 + self._caught)

    def _share(self) -> dict[str, str]:
        """Environment variables for one command's share of the cores and of a GPU's memory."""
        threads = str(max(1, num_cores() // self._jobs))
        return {
            "TF_NUM_INTRAOP_THREADS": threads,
            "TF_NUM_INTEROP_THREADS": threads,
            # Otherwise the first command would take all of a GPU's memory.
            "TF_FORCE_GPU_ALLOW_GROWTH": "true",
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }


def run_command(arguments: Sequence[str]) -> dict[str, Any]:
    """Runs a single command; see `Commands.run`."""
    with Commands() as commands:
        return commands.run(arguments)

"""Runs the project's commands, in this process where that will do, else in ones of their own."""

import contextlib
import io
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from experiments.reproduction.jobs import Commands

ROOT = Path(__file__).parents[1]

Done = subprocess.CompletedProcess[bytes]


def run_python(*arguments: str, standard_input: bytes = b"", timeout: float = 300.0) -> Done:
    """Runs Python with arguments in the root of the repository, and returns what came of it."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        input=standard_input,
        capture_output=True,
        timeout=timeout,
        check=False,
    )


def run_here(
    command: str, *arguments: str, standard_input: bytes = b"", folder: Path = ROOT
) -> Done:
    """Runs `python -m command` in this process, which saves its start, and returns what came of it.

    The command has the streams, the signal handlers and the environment of a process of its own,
    and leaves none of them changed. What it does to TensorFlow's settings, such as the number of
    threads or devices, would stay: commands that change these need `run_python`. An exception that
    a command does not turn into an exit status is the test's.

    Args:
        command: a module, such as "experiments.train".
        arguments: what stands behind it.
        standard_input: what it reads there.
        folder: the working directory.
    """
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    with contextlib.ExitStack() as stack:
        stdin = stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
        stdin.buffer.write(standard_input)
        stdin.seek(0)
        for context in (
            mock.patch.multiple(sys, argv=[command, *arguments], stdin=stdin),
            contextlib.redirect_stdout(streams[0]),
            contextlib.redirect_stderr(streams[1]),
            mock.patch.dict(os.environ),
            contextlib.chdir(folder),
            _same_signal_handlers(),
            warnings.catch_warnings(),
        ):
            stack.enter_context(context)
        # A test may have imported it.
        warnings.filterwarnings("ignore", ".* found in sys.modules", RuntimeWarning)
        status: Any = 0
        try:
            runpy.run_module(command, run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            status = ended.code or 0
        for stream in streams:
            stream.flush()
        output, errors = (stream.buffer.getvalue() for stream in streams)  # type: ignore[attr-defined]
    return subprocess.CompletedProcess([command, *arguments], status, output, errors)


@contextlib.contextmanager
def jobs_here() -> Iterator[None]:
    """While the block lasts, the commands that a command starts run in this process too.

    They have the threads of this process, whose number cannot be changed any more.
    """

    def finish(self: Commands, command: list[str], **options: Any) -> tuple[Done, str]:
        del self, options
        _, _, module, *arguments = command
        done = run_here(module, *arguments, folder=Path.cwd())
        sys.stderr.write(done.stderr.decode())
        return done, done.stdout.decode()

    with (
        mock.patch.object(Commands, "_finish", finish),
        mock.patch("seq2seq_memattn.compute.hardware.use_threads", lambda threads: None),
    ):
        yield


def error_lines(process: Done) -> list[str]:
    """Returns the lines of standard error that a command wrote as its errors."""
    lines = process.stderr.decode().splitlines()
    return [line for line in lines if line.startswith("error: ")]


@contextlib.contextmanager
def _same_signal_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

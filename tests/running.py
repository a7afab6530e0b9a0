"""Runs the project's commands in this process, or in processes of their own where needed."""

import contextlib
import io
import os
import re
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


def project_files() -> list[str]:
    """The project's files, relative to its root: what Git tracks; without Git, what is there."""
    git = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        listed = subprocess.run(git, capture_output=True, check=True).stdout.decode()
        return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    made = re.compile(r"(\.venv|\.git|runs|dist|build|docs/_build)/|.*(__pycache__|\.egg-info)/")
    names = (path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file())
    return sorted(name for name in names if not made.match(name))


def run_python(*arguments: str, standard_input: bytes = b"", timeout: float = 300.0) -> Done:
    """Runs Python with arguments in the root of the repository; returns status and output."""
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
    """Runs `python -m command` in this process, without the time to start Python and TensorFlow.

    Streams, signal handlers and environment are restored afterwards. TensorFlow's settings, such as
    the number of threads or devices, are not: commands that change them need `run_python`. An
    exception that the command does not turn into an exit status reaches the test.

    Args:
        command: a module, such as "experiments.train".
        arguments: arguments of the command.
        standard_input: content of its standard input.
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
        # A test may already have imported the module.
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


def is_running(pid: int) -> bool:
    """Whether a process runs. A zombie, which nobody has waited for, does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


@contextlib.contextmanager
def jobs_here() -> Iterator[None]:
    """Within the block, commands started by a command also run in this process.

    They use the threads of this process, because their number can no longer be changed.
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
    """The lines of a command's standard error that are error messages."""
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

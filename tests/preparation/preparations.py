"""A small preparation of parallel text, and access to its results."""

import subprocess
from pathlib import Path
from typing import Any

from seq2seq_memattn.data.splits import SplitData
from seq2seq_memattn.preparation.parallel_text import ParallelTextOptions
from tests.running import Done, run_here, run_python
from tests.texts import pairs, text_options

TRAIN, VALID = pairs(300, 1), pairs(20, 2)
KEPT = ".data.preparing-kept"

KILLED = """
import os, runpy, signal, sys

calls = 0
real_fsync = os.fsync

def fsync(descriptor):
    global calls
    calls += 1
    if calls == {moment}:
        os.kill(os.getpid(), signal.SIGKILL)
    real_fsync(descriptor)

os.fsync = fsync
sys.argv = ["", *{flags!r}]
runpy.run_module("{command}", run_name="__main__")
"""


def killed(command: str, flags: list[str], moment: int) -> Done:
    """Runs a command and kills it at its `moment`-th call of fsync."""
    return run_python("-c", KILLED.format(command=command, flags=flags, moment=moment))


def options_in(folder: Path, **options: Any) -> ParallelTextOptions:
    return text_options(folder, TRAIN, VALID, **options)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def decoded(directory: Path, split: str) -> list[tuple[str, str]]:
    data = SplitData(directory, split, 1)
    source, target = data.source_vocabulary, data.target_vocabulary
    return [
        (source.decode(s), target.decode(t)) for s, t in zip(data.source, data.target, strict=True)
    ]


def flags(options: ParallelTextOptions) -> list[str]:
    return [
        f"--{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in options.to_dict().items()
    ]


def command(options: ParallelTextOptions) -> subprocess.CompletedProcess[bytes]:
    return run_here("data_prep.parallel_text", *flags(options))

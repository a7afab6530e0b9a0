"""Runs the project's commands, and scripts about them, in processes of their own."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run_python(
    *arguments: str, standard_input: bytes = b"", timeout: float = 300.0
) -> subprocess.CompletedProcess[bytes]:
    """Runs Python with arguments in the root of the repository, and returns what came of it."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        input=standard_input,
        capture_output=True,
        timeout=timeout,
        check=False,
    )


def error_lines(process: subprocess.CompletedProcess[bytes]) -> list[str]:
    """Returns the lines of standard error that a command wrote as its errors."""
    lines = process.stderr.decode().splitlines()
    return [line for line in lines if line.startswith("error: ")]

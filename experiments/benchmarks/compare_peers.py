"""Compares the speed of this project and other systems, measured by one protocol.

    python -m experiments.benchmarks.compare_peers --systems=pytorch:bahdanau,ours:k_memory:64
        --output=F.json -- [the protocol's flags]

The systems run in turns, each in a process of its own, `--rounds` times. All systems get the same
flags of the protocol, such as `--train --lengths 50 --batch 128`.
`experiments/benchmarks/peers/README.md` describes the protocol and how to install the systems.

Each row is recorded as soon as it is measured. If a system fails, its rows so far are kept, the
other systems go on, and later rounds leave the failed system out. The command then ends with exit
status 1 and one line for each failed system.
"""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from experiments.benchmarks.peers.set_up import ENVIRONMENTS, PACKAGES, environment_python
from experiments.reproduction.results import ROOT, grouped, provenance, write_json
from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.compute.hardware import processor
from seq2seq_memattn.notes import print_note

OURS = "ours"
EXCEPTION = re.compile(r"[\w.]+(Error|Exception)\b")  # at the start of a line
SYSTEMS = [
    *("pytorch:bahdanau", "opennmt_py:luong", "tensorflow_addons:bahdanau"),
    *("ours:k_memory:64", "ours:bahdanau"),
]


def commands(systems: Sequence[str], environments: Path) -> dict[str, list[str]]:
    """Returns each system's command by label. The protocol's flags are appended later.

    Args:
        systems: each SCRIPT:ATTENTION, then +OPTION for each option of the script, such as
            "ours:k_memory:64+int8+plain".
        environments: folder of the other systems' environments.

    Raises:
        ValueError: if no system is named, or a script or its environment does not exist.
    """
    if not systems:
        raise ValueError("--systems: expected SCRIPT:ATTENTION; got none")
    found = {}
    for system in systems:
        name, _, which = system.partition(":")
        attention, *options = which.split("+")
        if name not in (OURS, *PACKAGES) or not attention:
            known = ", ".join((OURS, *PACKAGES))
            raise ValueError(f"--systems: expected SCRIPT:ATTENTION of {known}; got {system!r}")
        python = sys.executable if name == OURS else str(environment_python(environments, name))
        if not Path(python).exists():
            set_up = f"python -m experiments.benchmarks.peers.set_up {name}"
            raise ValueError(f"{python}: not found; install it with `{set_up}`")
        found[f"{name.replace('_', '-')} {which}"] = [
            *(python, "-m", f"experiments.benchmarks.peers.{name}", "--attention", attention),
            *(word for option in options for word in ("--option", option)),
        ]
    return found


def measure(command: Sequence[str]) -> Generator[dict[str, Any], None, None]:
    """Runs one system once; yields each row as soon as the system prints it.

    Raises:
        RuntimeError: if the command fails; the message has the line of stderr that names the error.
    """
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}  # all systems use the CPU
    with (
        # A file, because a pipe that nobody reads would fill up and stop the system.
        tempfile.TemporaryFile("w+", errors="replace") as stderr,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment, cwd=ROOT
        ) as process,
    ):
        try:
            for line in process.stdout or ():
                if line.startswith("{"):
                    yield json.loads(line)
        except BaseException:  # whatever ends the comparison also ends the running system
            process.kill()
            raise
        status = process.wait()
        if status:
            stderr.seek(0)
            how = f"exit status {status}" if status > 0 else signal.Signals(-status).name
            raise RuntimeError(": ".join([how, *_last_words(stderr.read())]))


def _last_words(text: str) -> list[str]:
    """The last line that names an exception, because PyTorch prints advice after it.

    If no line names an exception, the last line, if there is one.
    """
    lines = text.strip().splitlines()
    return ([line for line in lines if EXCEPTION.match(line)] or lines)[-1:]


def take_turns(
    systems: Mapping[str, Sequence[str]], rounds: int, record: Callable[[dict[str, Any]], None]
) -> dict[str, str]:
    """Measures the systems in turns. A system that fails is left out of later rounds.

    Args:
        systems: each system's command by label.
        rounds: int > 0. How many times each system is measured.
        record: called with each row as soon as the row is measured.

    Returns:
        The reason for each failure, by label.
    """
    failures: dict[str, str] = {}
    for turn in range(rounds):
        for system, command in systems.items():
            if system in failures:
                continue
            try:
                with closing(measure(command)) as measured:
                    for row in measured:
                        record({"system": system, "round": turn, **row})
            except RuntimeError as error:
                failures[system] = str(error)
                print_note(f"{system} failed: {error}")
    return failures


def summarise(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Median tokens per second by system, kind, lengths and batch, over the rounds."""
    names = ("system", "kind", "lengths", "batch")
    groups = grouped(rows, lambda row: tuple(row[name] for name in names))
    return [
        {
            **dict(zip(names, key, strict=True)),
            "tokens_per_second": statistics.median(row["tokens_per_s"] for row in group),
            "rounds": [row["tokens_per_s"] for row in group],
            "clean": all(row["clean"] for row in group),
        }
        for key, group in groups.items()
    ]


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.items(
        "systems", SYSTEMS, "each SCRIPT:ATTENTION, with +OPTION for an option of the script"
    )
    flags.string("environments", ENVIRONMENTS, "folder of the other systems' environments")
    flags.integer("rounds", 2, "times that each system is measured", lower_bound=1)
    flags.string("output", None, "JSON file")
    flags.positional("-- [the protocol's flags]")


def main(arguments: cli.Arguments) -> None:
    """Measures the systems in turns and summarises the rows."""
    systems = commands(arguments.systems, Path(arguments.environments).absolute())
    # Importing Keras takes seconds, so it must not happen while a system is measured.
    origin = provenance(processor()) if arguments.output else {}
    rows: list[dict[str, Any]] = []

    def record(row: dict[str, Any]) -> None:
        rows.append(row)
        print_note(
            f"{row['system']}, {row['kind']} {row['lengths']}, batch {row['batch']}: "
            f"{row['tokens_per_s']:,.0f} tokens/s"
            + ("" if row["clean"] else ", disturbed by other programs")
        )
        if arguments.output:
            found = {**origin, "summary": summarise(rows), "rows": rows}
            write_json(Path(arguments.output), found)

    with_flags = {system: [*command, *arguments.rest] for system, command in systems.items()}
    failures = take_turns(with_flags, arguments.rounds, record)
    cli.print_result({"summary": summarise(rows)})
    for system, reason in failures.items():
        print_note(f"error: {system}: {reason}")
    if failures:
        sys.exit(cli.EXIT_ERROR)


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])

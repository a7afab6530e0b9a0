"""Compares the speed of this project and other systems, measured by one protocol.

    python -m experiments.benchmarks.compare_peers --systems=pytorch:bahdanau,ours:k_memory:64
        --output=F.json -- [the protocol's flags]

The systems run in turns, each in a process of its own, `--rounds` times. All systems get the same
flags of the protocol, such as `--train --lengths 50 --batch 128`.
`experiments/benchmarks/peers/README.md` describes the protocol and how to install the systems.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.benchmarks.peers.set_up import ENVIRONMENTS, PACKAGES, environment_python
from experiments.reproduction.results import ROOT, provenance, write_json
from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.compute.hardware import processor
from seq2seq_memattn.notes import print_note

OURS = "ours"
SYSTEMS = [
    *("pytorch:bahdanau", "opennmt_py:luong", "tensorflow_addons:bahdanau"),
    *("ours:k_memory:64", "ours:bahdanau"),
]


def commands(systems: Sequence[str], environments: Path) -> dict[str, list[str]]:
    """Returns each system's command by label. The protocol's flags are appended later.

    Args:
        systems: each SCRIPT:ATTENTION or SCRIPT:ATTENTION+OPTION, such as "ours:k_memory:64+plain".
        environments: folder of the other systems' environments.

    Raises:
        ValueError: if no system is named, or a script or its environment does not exist.
    """
    if not systems:
        raise ValueError("--systems: expected SCRIPT:ATTENTION; got none")
    found = {}
    for system in systems:
        name, _, which = system.partition(":")
        attention, _, option = which.partition("+")
        if name not in (OURS, *PACKAGES) or not attention:
            known = ", ".join((OURS, *PACKAGES))
            raise ValueError(f"--systems: expected SCRIPT:ATTENTION of {known}; got {system!r}")
        python = sys.executable if name == OURS else str(environment_python(environments, name))
        if not Path(python).exists():
            set_up = f"python -m experiments.benchmarks.peers.set_up {name}"
            raise ValueError(f"{python}: not found; install it with `{set_up}`")
        found[f"{name.replace('_', '-')} {which}"] = [
            *(python, "-m", f"experiments.benchmarks.peers.{name}", "--attention", attention),
            *(["--option", option] if option else []),
        ]
    return found


def measure(command: Sequence[str]) -> list[dict[str, Any]]:
    """Runs one system once; returns its rows.

    Raises:
        ValueError: if the command fails; the message has its last line of standard error.
    """
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}  # all systems use the CPU
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    if done.returncode:
        last = done.stderr.strip().split("\n")[-1]
        raise ValueError(f"{' '.join(command)}: exit status {done.returncode}: {last}")
    return [json.loads(line) for line in done.stdout.split("\n") if line.startswith("{")]


def summarise(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Median tokens per second by system, kind, lengths and batch, over the rounds."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        key = (row["system"], row["kind"], row["lengths"], row["batch"])
        groups.setdefault(key, []).append(row)
    return [
        {
            **dict(zip(("system", "kind", "lengths", "batch"), key, strict=True)),
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
    rows = []
    for turn in range(arguments.rounds):
        for system, command in systems.items():
            for row in measure([*command, *arguments.rest]):
                rows.append({"system": system, "round": turn, **row})
                print_note(
                    f"{system}, {row['kind']} {row['lengths']}, batch {row['batch']}: "
                    f"{row['tokens_per_s']:,.0f} tokens/s"
                    + ("" if row["clean"] else ", disturbed by other programs")
                )
    summary = summarise(rows)
    if arguments.output:
        found = {**provenance(processor()), "summary": summary, "rows": rows}
        write_json(Path(arguments.output), found)
    cli.print_result({"summary": summary})


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])

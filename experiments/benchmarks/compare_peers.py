"""Measures this project and other systems in turns, by one protocol.

    python -m experiments.benchmarks.compare_peers --systems=pytorch:bahdanau,ours:k_memory:64
        --output=F.json -- [the protocol's flags]

`experiments/benchmarks/peers/README.md` says what is measured, and how to set the other systems
up. Each system runs in a process of its own, in turns, `--rounds` times. The protocol's flags are
for all of them, such as `--train --lengths 50 --batch 128`.
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
    """The systems: label and command, to which the protocol's flags are added.

    Args:
        systems: each SCRIPT:ATTENTION or SCRIPT:ATTENTION+OPTION, such as "ours:k_memory:64+plain".
        environments: the folder of the other systems' environments.

    Raises:
        ValueError: if there is no such script, or no environment for it.
    """
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
            raise ValueError(f"{python}: not found; `{set_up}` makes it")
        found[f"{name.replace('_', '-')} {which}"] = [
            *(python, "-m", f"experiments.benchmarks.peers.{name}", "--attention", attention),
            *(["--option", option] if option else []),
        ]
    return found


def measure(command: Sequence[str]) -> list[dict[str, Any]]:
    """Runs one system once; returns its rows.

    Raises:
        ValueError: if it fails; with its last line of standard error.
    """
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}  # all compute on the processor
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
    flags.integer("rounds", 2, "times that every system is measured", lower_bound=1)
    flags.string("output", None, "JSON file")
    flags.positional("-- [the protocol's flags]")


def main(arguments: cli.Arguments) -> None:
    """Compares from flags, and those of the protocol behind them."""
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

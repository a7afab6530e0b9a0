"""Measures this project and the peers in alternation, on the peers' own harness.

    python -m experiments.benchmarks.compare_peers --peers_dir=D --torch_python=P --onmt_python=P
        --output=F.json -- [the harness's flags]

Each system runs in a process of its own, in turns, `--rounds` times. The harness's flags are for
all of them, such as `--train --lengths 50 --batch 128`.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.reproduction.results import provenance, write_json
from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.compute.hardware import processor
from seq2seq_memattn.notes import print_note


def commands(peers: Path, torch: str, onmt: str, ours: Sequence[str]) -> dict[str, list[str]]:
    """The systems: label and command, to which the harness's flags are added."""
    found = {}
    if torch:
        script = str(peers / "bench_torch_ref.py")
        found["pytorch bahdanau"] = [torch, script]
    if onmt:
        script = str(peers / "bench_opennmt_py.py")
        found["opennmt-py luong"] = [onmt, script, "--attention", "luong"]
    for name in ours:
        attention, _, option = name.partition("+")
        extra = ["--option", option] if option else []
        found[f"ours {name}"] = [
            *(sys.executable, "-m", "experiments.benchmarks.peer_adapter", str(peers)),
            *("--attention", attention, *extra),
        ]
    return found


def measure(command: Sequence[str]) -> list[dict[str, Any]]:
    """Runs one system once; returns its rows.

    Raises:
        ValueError: if it fails; with its last line of standard error.
    """
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}  # all compute on the processor
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        last = done.stderr.strip().split("\n")[-1]
        raise ValueError(f"{command[0]}: exit status {done.returncode}: {last}")
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
    flags.string("peers_dir", None, "folder of the harness", required=True)
    flags.string("torch_python", "", "python of the PyTorch peer's environment")
    flags.string("onmt_python", "", "python of OpenNMT-py's environment")
    flags.items(
        "ours", ["k_memory:64", "bahdanau"], "attentions of ours; +no_feeding without feeding"
    )
    flags.integer("rounds", 2, "times that every system is measured", lower_bound=1)
    flags.string("output", None, "JSON file")
    flags.positional("-- [the harness's flags]")


def main(arguments: cli.Arguments) -> None:
    """Compares from flags, and those of the harness behind them."""
    systems = commands(
        Path(arguments.peers_dir), arguments.torch_python, arguments.onmt_python, arguments.ours
    )
    rows = []
    for turn in range(arguments.rounds):
        for system, command in systems.items():
            for row in measure([*command, *arguments.rest]):
                rows.append({"system": system, "round": turn, **row})
                print_note(
                    f"{system}, {row['kind']} {row['lengths']}, batch {row['batch']}: "
                    f"{row['tokens_per_s']:,.0f} tokens/s"
                )
    summary = summarise(rows)
    if arguments.output:
        found = {**provenance(processor()), "summary": summary, "rows": rows}
        write_json(Path(arguments.output), found)
    cli.print_result({"summary": summary})


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])

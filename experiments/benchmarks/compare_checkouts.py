"""Compares two checkouts: python -m experiments.benchmarks.compare_checkouts --base=DIR.

This checkout and the base run `experiments.speed` in turns, in separate processes, so a change in
the machine's speed affects both equally. The first round compares the base with itself: its ratios
show how much the times of equal code vary. A round in which other programs used more than
`--max_elsewhere` cores is repeated.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments.benchmarks.machine_load import QUIET, Stopwatch
from experiments.reproduction.results import ROOT, commit, provenance, write_json
from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.compute.hardware import processor
from seq2seq_memattn.notes import print_note

DECODING = ("--modes=exact", "--attentions=k_memory:64,bahdanau")
KINDS = {
    "batches": (*DECODING, "--lengths=200", "--num_sentences=128"),
    "one sentence": (*DECODING, "--lengths=20", "--num_sentences=40", "--batch_size=1"),
    "training": ("--modes=train", "--lengths=50", "--num_sentences=512"),
}
MOST_TRIES = 3  # for each round


class Round(NamedTuple):
    """The times of two checkouts in one round.

    Fields:
        base, ours: seconds by name of the measurement.
        elsewhere: cores that other programs used during the round.
    """

    base: dict[str, float]
    ours: dict[str, float]
    elsewhere: float

    def ratios(self) -> dict[str, float]:
        """Seconds of the base divided by ours: above 1 if ours is faster."""
        return {name: self.base[name] / self.ours[name] for name in self.base}


def measure(checkout: Path, kinds: Sequence[str], repeats: int) -> dict[str, float]:
    """Seconds of each row of `experiments.speed` in a checkout, by kind and attention.

    Raises:
        ValueError: if the command fails; the message has the last line of its standard error.
    """
    found = {}
    for kind in kinds:
        command = [sys.executable, "-m", "experiments.speed", *KINDS[kind], f"--repeats={repeats}"]
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
        if done.returncode:
            last = done.stderr.strip().split("\n")[-1]
            raise ValueError(f"{checkout}: exit status {done.returncode}: {last}")
        for row in json.loads(done.stdout.strip().split("\n")[-1])["rows"]:
            found[f"{kind}, {row['attention']}"] = row["seconds"]
    return found


def measure_round(base: Path, ours: Path, kinds: Sequence[str], repeats: int) -> Round:
    """Measures two checkouts one after the other, and the cores that other programs used."""
    with Stopwatch() as watch:
        theirs, found = (measure(checkout, kinds, repeats) for checkout in (base, ours))
    return Round(theirs, found, watch.elsewhere)


def summarise(equal: Round, rounds: Sequence[Round]) -> list[dict[str, Any]]:
    """One row for each measurement: the median ratio of the rounds, and the ratio of equal code."""
    every = [each.ratios() for each in rounds]
    return [
        {
            "measured": name,
            "ratio": round(statistics.median(ratios[name] for ratios in every), 4),
            "ratios": [round(ratios[name], 4) for ratios in every],
            "ratio_of_equal_code": round(equal_ratio, 4),
        }
        for name, equal_ratio in equal.ratios().items()
    ]


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.string("base", None, "another checkout of this project", required=True)
    flags.items(
        "kinds",
        list(KINDS),
        f"what to measure: one or more of {', '.join(KINDS)}, separated by commas",
    )
    flags.integer("rounds", 5, "rounds after the one that compares equal code", lower_bound=1)
    flags.integer("repeats", 3, "timed turns of each process", lower_bound=1)
    flags.number("max_elsewhere", QUIET, "cores that other programs may use", lower_bound=0.0)
    flags.string("output", None, "JSON file")


def main(arguments: cli.Arguments) -> None:
    """Compares this checkout with the base that the flags name."""
    base = Path(arguments.base).resolve()
    if not (base / "experiments" / "speed.py").exists():
        raise ValueError(f"--base: expected a checkout of this project; got {arguments.base!r}")
    if unknown := sorted(set(arguments.kinds) - set(KINDS)):
        raise ValueError(f"--kinds: expected some of {', '.join(KINDS)}; got {unknown[0]!r}")

    def quiet_round(name: str, other: Path) -> Round:
        for _ in range(MOST_TRIES):
            found = measure_round(base, other, arguments.kinds, arguments.repeats)
            print_note(f"{name}: {found.elsewhere:.2f} cores used elsewhere, {found.ratios()}")
            if found.elsewhere <= arguments.max_elsewhere:
                return found
        raise ValueError(
            f"other programs used more than {arguments.max_elsewhere} cores in {MOST_TRIES} rounds"
        )

    origin = {**provenance(processor()), "base_commit": commit(base)}
    equal, rounds = quiet_round("equal code", base), []
    for number in range(1, arguments.rounds + 1):
        rounds.append(quiet_round(f"round {number} of {arguments.rounds}", ROOT))
        summary = summarise(equal, rounds)
        if arguments.output:  # after each round, so that a later failure loses none
            found = {
                **origin,
                "summary": summary,
                "equal": equal._asdict(),
                "rounds": [each._asdict() for each in rounds],
            }
            write_json(Path(arguments.output), found)
    cli.print_result({"summary": summary})


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])

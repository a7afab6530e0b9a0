"""Averages a run's checkpoints.

The mean of their weights goes to average.npz in the run directory, which `--checkpoint=average.npz`
gives to evaluate, translate and score. A damaged checkpoint is named and passed over; the one
before it counts instead.
"""

import sys
from pathlib import Path

from tqdm import tqdm

from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.notes import print_note

SUFFIX = ".npz"


def output_path(run_dir: str, name: str) -> Path:
    """The file in the run directory; ValueError for a name that is not for it to have."""
    from seq2seq_memattn.runs.directory import BEST_NAME

    if name == BEST_NAME or Path(name).name != name or not name.endswith(SUFFIX):
        raise ValueError(
            f"--output: expected the name of a file that ends in {SUFFIX}, without a folder and "
            f"not {BEST_NAME}; got {name!r}"
        )
    return Path(run_dir) / name


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.string("run_dir", None, "run directory", required=True)
    flags.integer("last", 5, "how many of the newest checkpoints to average", lower_bound=1)
    flags.string("output", "average.npz", "file to write in the run directory")


def main(arguments: cli.Arguments) -> None:
    """Averages from flags."""
    from seq2seq_memattn.runs.averaging import average_checkpoints

    path = output_path(arguments.run_dir, arguments.output)
    with tqdm(total=arguments.last, unit="checkpoint", file=sys.stderr) as bar:
        updates, problems = average_checkpoints(
            Path(arguments.run_dir), arguments.last, path, bar.update
        )
    for problem in problems:
        print_note(f"{problem}; the one before it is used")
    cli.print_result({"run_dir": arguments.run_dir, "output": path, "updates": updates})

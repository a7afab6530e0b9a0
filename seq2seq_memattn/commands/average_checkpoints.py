"""Averages a run's checkpoints.

Writes the mean of the weights of the newest checkpoints to average.npz in the run directory. All
commands that use a run read this file with `--checkpoint=average.npz`. A damaged checkpoint is
reported and skipped, and the checkpoint before it is used instead.
"""

from pathlib import Path

from tqdm import tqdm

from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.notes import STANDARD_ERROR, print_note

SUFFIX = ".npz"


def output_path(run_dir: str, name: str) -> Path:
    """The path of the output file in the run directory; raises ValueError for a wrong name."""
    from seq2seq_memattn.runs.checkpoints import is_checkpoint_name
    from seq2seq_memattn.runs.directory import BEST_NAME

    is_taken = name == BEST_NAME or is_checkpoint_name(name)
    if is_taken or Path(name).name != name or not name.endswith(SUFFIX):
        raise ValueError(
            f"--output: expected a file name that ends in {SUFFIX}, has no folder, and is neither "
            f"{BEST_NAME} nor that of a checkpoint; got {name!r}"
        )
    return Path(run_dir) / name


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.string("run_dir", None, "run directory", required=True)
    flags.integer("last", 5, "how many of the newest checkpoints to average", lower_bound=1)
    flags.string("output", "average.npz", "file to write in the run directory")


def main(arguments: cli.Arguments) -> None:
    """Averages the checkpoints that the flags name."""
    from seq2seq_memattn.runs.averaging import average_checkpoints

    path = output_path(arguments.run_dir, arguments.output)
    with tqdm(total=arguments.last, unit="checkpoint", file=STANDARD_ERROR) as bar:
        updates, problems = average_checkpoints(
            Path(arguments.run_dir), arguments.last, path, bar.update
        )
    for problem in problems:
        print_note(f"{problem}; the one before it is used")
    cli.print_result({"run_dir": arguments.run_dir, "output": path, "updates": updates})

"""Averages a run's checkpoints: python -m experiments.average_checkpoints --run_dir=D --last=5.

The mean of their weights goes to average.npz in the run directory, which `--checkpoint=average.npz`
gives to evaluate, translate and score. A damaged checkpoint is named and passed over; the one
before it counts instead.
"""

import sys
from pathlib import Path

from absl import flags
from tqdm import tqdm

from experiments import cli

SUFFIX = ".npz"


def output_path(run_dir: str, name: str) -> Path:
    """The file in the run directory; ValueError for a name that is not for it to have."""
    from seq2seq_memattn.training.run_directory import BEST_NAME

    if name == BEST_NAME or Path(name).name != name or not name.endswith(SUFFIX):
        raise ValueError(
            f"--output: expected the name of a file that ends in {SUFFIX}, without a folder and "
            f"not {BEST_NAME}; got {name!r}"
        )
    return Path(run_dir) / name


def main(arguments: list[str]) -> None:
    """Averages from flags."""
    del arguments
    from seq2seq_memattn.training.averaging import average_checkpoints

    options = flags.FLAGS
    path = output_path(options.run_dir, options.output)
    with tqdm(total=options.last, unit="checkpoint", file=sys.stderr) as bar:
        updates, problems = average_checkpoints(
            Path(options.run_dir), options.last, path, bar.update
        )
    for problem in problems:
        cli.print_note(f"{problem}; the one before it is used")
    cli.print_result({"run_dir": options.run_dir, "output": path, "updates": updates})


if __name__ == "__main__":
    flags.DEFINE_string("run_dir", None, "run directory", required=True)
    flags.DEFINE_integer("last", 5, "checkpoints averaged, the newest", lower_bound=1)
    flags.DEFINE_string("output", "average.npz", "name of the file in the run directory")
    cli.run(main)

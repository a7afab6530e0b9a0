"""The same training with one and with several processes: python -m experiments.compare_workers.

    python -m experiments.compare_workers --num_workers=1,2,4,8 --output=F.json -- \
        --config=copy_20_k32 --data_dir=D --dropout=0 --optimizer=sgd --learning_rate=1

Trains with what stands behind `--` (options of `train` but `--run_dir`) on clusters of each size,
all on this machine, and compares what each update and the last checkpoint have with those of the
first size. With plain gradient descent and a clip that is active a wrong scale of the gradient
shows, which Adam would hide.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags

from experiments import cli
from experiments.records import processor, provenance, write_json
from experiments.study import read_curve
from seq2seq_memattn.training.checkpoints import CheckpointFolder
from seq2seq_memattn.training.run_directory import CHECKPOINTS_NAME


def losses(run_dir: Path) -> list[float]:
    """The loss of every update, nats per target token."""
    return [point["loss"] for point in read_curve(run_dir) if point["kind"] == "train"]


def weights(run_dir: Path) -> dict[str, Any]:
    """The arrays of the last checkpoint, without those of random generators."""
    path = CheckpointFolder(run_dir / CHECKPOINTS_NAME, sys.maxsize).paths()[-1]
    with np.load(path) as archive:
        names = [name for name in archive.files if name != "record" and "seed" not in name]
        return {name: archive[name].astype(np.float64) for name in names}


def difference(ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[float, str]:
    """The largest difference over the largest weight of a variable, and the variable's name."""
    found = [
        (float(np.abs(ours[name] - other).max() / max(np.abs(other).max(), 1e-30)), name)
        for name, other in theirs.items()
        if other.size
    ]
    worst = max(found)
    if not np.isfinite([size for size, _ in found]).all():
        raise ValueError("a weight is not finite")
    return worst


def train(run_dir: Path, num_workers: int, arguments: Sequence[str]) -> None:
    """Trains a run on a cluster of some size; a line of the log for each update."""
    command = [sys.executable, "-m", "experiments.train", *arguments, f"--run_dir={run_dir}"]
    launch = ["-m", "experiments.launch_local", f"--num_workers={num_workers}", "--"]
    subprocess.run(
        [sys.executable, *launch, *command, "--log_every=1"], check=True, stdout=subprocess.DEVNULL
    )


def main(arguments: list[str]) -> None:
    """Compares from flags."""
    options = flags.FLAGS
    sizes = cli.positive_numbers("num_workers", options.num_workers)
    folder = Path(options.work_dir)
    if folder.exists():
        raise ValueError(f"{folder}: expected no such folder; runs of other code may be in it")
    rows: list[dict[str, Any]] = []
    for size in sizes:
        run_dir = folder / f"workers_{size}"
        try:
            train(run_dir, size, arguments)
        except subprocess.CalledProcessError as error:
            raise ValueError(
                f"the training with {size} processes ended with status {error.returncode}"
            ) from error
        first = folder / f"workers_{sizes[0]}"
        pairs = list(zip(losses(run_dir), losses(first), strict=True))
        worst, name = difference(weights(run_dir), weights(first))
        rows.append(
            {
                "num_workers": size,
                "updates": len(pairs),
                # Relative.
                "loss_difference": max(abs(ours / theirs - 1) for ours, theirs in pairs),
                "weight_difference": worst,
                "variable": name.partition(":")[2],
            }
        )
        cli.print_note(str(rows[-1]))
    if options.output:
        write_json(Path(options.output), {**provenance(processor()), "rows": rows})
    cli.print_result({"rows": rows})


if __name__ == "__main__":
    flags.DEFINE_list("num_workers", ["1", "2", "4", "8"], "sizes of the clusters")
    flags.DEFINE_string("work_dir", "runs/compare_workers", "where the runs are made")
    flags.DEFINE_string("output", None, "JSON file for the result")
    cli.run(main, accepts_arguments=True)

r"""The same training on one and on several: python -m experiments.compare_workers.

    python -m experiments.compare_workers --num_workers=1,2,4,8 --num_devices=2 --output=F.json -- \
        --config=copy_20_k32 --data_dir=D --dropout=0 --optimizer=sgd --learning_rate=1

Trains with what stands behind `--` (options of `train` but `--run_dir`) on clusters of each size,
all on this machine, and by one process on several of its devices (GPUs, or parts of its processor),
and compares what each update and the last checkpoint have with those of the first cluster. With
plain gradient descent a wrong scale of the gradient shows, which Adam would hide; a clip hides it
too where it is active, so the norms before it are compared, and how many of the updates were
clipped is counted.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from experiments import cli
from experiments.records import provenance, read_json, write_json
from experiments.run_files import last_checkpoint, read_curve
from seq2seq_memattn.compute.hardware import processor
from seq2seq_memattn.runs.directory import CONFIG_NAME


def figures(run_dir: Path, name: str) -> list[float]:
    """What every update logged under a name."""
    return [point[name] for point in read_curve(run_dir) if point["kind"] == "train"]


def furthest(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The largest relative difference of two sequences."""
    return max(abs(one / other - 1) for one, other in zip(ours, theirs, strict=True))


def weights(run_dir: Path) -> dict[str, Any]:
    """The arrays of the last checkpoint, without those of random generators."""
    arrays, _ = last_checkpoint(run_dir)
    return {name: array.astype(np.float64) for name, array in arrays.items() if "seed" not in name}


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


class Size(NamedTuple):
    """How many processes train, and on how many devices if there is but one."""

    num_workers: int
    num_devices: int = 0

    def __str__(self) -> str:
        """Its words in messages."""
        return (
            f"{self.num_devices} devices" if self.num_devices else f"{self.num_workers} processes"
        )


def train(run_dir: Path, size: Size, arguments: Sequence[str]) -> None:
    """Trains a run on so many; a line of the log for each update."""
    command = [sys.executable, "-m", "experiments.train", *arguments, f"--run_dir={run_dir}"]
    command.append("--log_every=1")
    if size.num_devices:
        command += ["--strategy=mirrored", f"--num_devices={size.num_devices}"]
    else:
        launch = ["-m", "experiments.launch_local", f"--num_workers={size.num_workers}", "--"]
        command = [sys.executable, *launch, *command]
    try:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    except subprocess.CalledProcessError as error:
        raise ValueError(f"the training on {size} ended with status {error.returncode}") from error


def main(arguments: list[str]) -> None:
    """Compares from flags."""
    options = flags.FLAGS
    sizes = [Size(number) for number in cli.positive_numbers("num_workers", options.num_workers)]
    if options.num_devices:
        devices = cli.positive_numbers("num_devices", options.num_devices)
        sizes += [Size(1, number) for number in devices]
    folder = Path(options.work_dir)
    if folder.exists():
        raise ValueError(f"{folder}: expected no such folder; runs of other code may be in it")
    rows: list[dict[str, Any]] = []
    run_dirs = [folder / str(size).replace(" ", "_") for size in sizes]
    first = run_dirs[0]
    for size, run_dir in zip(sizes, run_dirs, strict=True):
        train(run_dir, size, arguments)
        clip_norm = read_json(run_dir / CONFIG_NAME)["training"]["clip_norm"]
        norms = figures(run_dir, "gradient_norm")
        worst, name = difference(weights(run_dir), weights(first))
        rows.append(
            {
                **size._asdict(),
                "updates": len(norms),
                "clipped_updates": sum(norm > clip_norm for norm in norms) if clip_norm else 0,
                "loss_difference": furthest(figures(run_dir, "loss"), figures(first, "loss")),
                "norm_difference": furthest(norms, figures(first, "gradient_norm")),
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
    flags.DEFINE_list("num_devices", [], "numbers of devices of one process, by mirrored variables")
    flags.DEFINE_string("work_dir", "runs/compare_workers", "where the runs are made")
    flags.DEFINE_string("output", None, "JSON file for the result")
    cli.run(main, accepts_arguments=True)

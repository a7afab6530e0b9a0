"""Averages the weights of a run's last checkpoints."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.runs.checkpoints import CheckpointFolder, read_weights, write_arrays
from seq2seq_memattn.runs.directory import CHECKPOINTS_NAME, read_model_config


def average_checkpoints(
    run_dir: Path, last: int, output: Path, on_file: Callable[[], object] = lambda: None
) -> tuple[list[int], list[str]]:
    """Writes the mean of the weights of the last undamaged checkpoints.

    Source: Junczys-Dowmunt, Dwojak and Sennrich (2016). Sums are in float64; only one checkpoint is
    in memory at a time.

    Args:
        run_dir: Path. A run directory.
        last: int > 0. How many checkpoints to average. A damaged checkpoint is skipped, and the one
            before it counts instead.
        output: Path. The file to write; `load_weights` can read it. It records the update of the
            newest averaged checkpoint as its own.
        on_file: called after each checkpoint.

    Returns:
        updates: the update numbers of the averaged checkpoints, from the oldest to the newest.
        problems: one line for each damaged checkpoint that was skipped.

    Raises:
        ValueError: if the directory is not a run, or has fewer undamaged checkpoints than `last`.
    """
    folder = CheckpointFolder(run_dir / CHECKPOINTS_NAME, keep=sys.maxsize)
    config = read_model_config(run_dir)
    paths = folder.paths()
    _check_count(folder, len(paths), last, [])
    weights = Seq2Seq(config).weights
    sums = [np.zeros(weight.shape, np.float64) for weight in weights]
    updates: list[int] = []
    problems: list[str] = []
    for path in reversed(paths):
        if len(updates) == last:
            break
        try:
            record = read_weights(path, weights)
        except (ValueError, FileNotFoundError) as error:  # a running training may have removed it
            problems.append(str(error))
            continue
        for total, weight in zip(sums, weights, strict=True):
            total += np.asarray(weight, np.float64)
        updates.append(record["update"])
        on_file()
    _check_count(folder, len(updates), last, problems)
    for total, weight in zip(sums, weights, strict=True):
        weight.assign(total / last)
    write_arrays(output, weights, {"update": updates[0], "averaged": updates[::-1]})
    return updates[::-1], problems


def _check_count(folder: CheckpointFolder, whole: int, last: int, problems: list[str]) -> None:
    if whole < last:
        damaged = f", and {len(problems)} damaged ({'; '.join(problems)})" if problems else ""
        raise ValueError(
            f"{folder.folder}: expected {last} checkpoints to average; there are {whole}{damaged} "
            "(the training option `keep` says how many are kept)"
        )

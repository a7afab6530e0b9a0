"""Checkpoints: everything a run needs to go on, in one file each.

A checkpoint is a NumPy archive (its members carry checksums) of the variables of model and
optimiser, of the seed generators among them, with a JSON record of the rest: update, data
position, best score. It is written under a temporary name, synced and renamed, so a file that
has a checkpoint's name is whole unless the disk damaged it.
"""

import json
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seq2seq_memattn.data.text_files import atomic_binary

_NAME = re.compile(r"checkpoint-(\d{9})\.npz")
_RECORD = "record"


def write_arrays(path: Path, variables: Sequence[Any], record: dict[str, Any]) -> None:
    """Writes variables and a JSON record, atomically."""
    arrays: dict[str, Any] = {_key(i, v): np.asarray(v) for i, v in enumerate(variables)}
    arrays[_RECORD] = np.frombuffer(json.dumps(record).encode(), dtype=np.uint8)
    with atomic_binary(path) as stream:
        np.savez(stream, **arrays)


def read_arrays(path: Path, variables: Sequence[Any]) -> dict[str, Any]:
    """Assigns variables from a file of `write_arrays` and returns its record.

    Nothing is assigned unless the whole file can be read and fits.

    Raises:
        ValueError: if the file is damaged, or was written for other variables; names it.
    """
    try:
        with np.load(path) as archive:
            record = json.loads(archive[_RECORD].tobytes())
            arrays = {name: archive[name] for name in archive.files if name != _RECORD}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: damaged checkpoint ({error})") from error
    for index, variable in enumerate(variables):
        array = arrays.get(_key(index, variable))
        if array is None:
            raise ValueError(f"{path}: expected the variable {variable.path}; there is none")
        if tuple(array.shape) != tuple(variable.shape):
            raise ValueError(
                f"{path}: expected {variable.path} of shape {tuple(variable.shape)}; "
                f"got {array.shape}"
            )
    for index, variable in enumerate(variables):
        variable.assign(arrays[_key(index, variable)])
    return record


def _key(index: int, variable: Any) -> str:
    return f"{index:04d}:{variable.path}"


class CheckpointFolder:
    """The checkpoints of a run, in the order of their updates.

    Args:
        folder: Path. Made if it is not there.
        keep: int > 0. How many of the last ones are kept.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder = folder
        self.keep = keep
        folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.glob(".*.tmp"):  # of a run that was killed while it wrote
            leftover.unlink()

    def paths(self) -> list[Path]:
        """Checkpoints from the oldest to the newest."""
        return sorted(path for path in self.folder.iterdir() if _NAME.fullmatch(path.name))

    def save(self, update: int, variables: Sequence[Any], record: dict[str, Any]) -> Path:
        """Writes a checkpoint, then removes what is older than the last `keep`."""
        path = self.folder / f"checkpoint-{update:09d}.npz"
        write_arrays(path, variables, {**record, "update": update})
        for old in self.paths()[: -self.keep]:
            old.unlink()
        return path

    def restore(self, variables: Sequence[Any]) -> tuple[dict[str, Any] | None, list[str]]:
        """Restores the newest checkpoint that is whole.

        Returns:
            record: what was saved beside the variables; None if there is no checkpoint.
            problems: one line for each damaged checkpoint that was passed over.

        Raises:
            ValueError: if there are checkpoints, but none that can be read.
        """
        paths = self.paths()
        problems: list[str] = []
        for path in reversed(paths):
            try:
                return read_arrays(path, variables), problems
            except ValueError as error:
                problems.append(str(error))
        if paths:
            raise ValueError(f"no checkpoint in {self.folder} can be read: {problems[0]}")
        return None, problems

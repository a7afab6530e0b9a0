"""Checkpoints: each is one file with everything that a run needs to resume.

A checkpoint is a NumPy archive, whose members carry checksums. It holds the variables of model and
optimiser, including the seed generators, and a JSON record of the rest: update, data position, best
score and so on. The file is written under a temporary name, synced and renamed. A file with the
name of a checkpoint is therefore complete unless the disk damaged it.
"""

import errno
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seq2seq_memattn.text.files import atomic_binary

_NAME = re.compile(r"checkpoint-(\d{9})\.npz")
_RECORD = "record"

# Values of `errno` in an OSError raised by reading a damaged file or disk; None stands for an error
# without `errno`. Other errors, such as a missing permission, say nothing about the content.
_DAMAGE = (None, errno.EINVAL, errno.EIO)


# (file, weights of a model) -> the file's record; see `read_weights`.
Reader = Callable[[Path, Sequence[Any]], dict[str, Any]]


def is_checkpoint_name(name: str) -> bool:
    """Whether a file of this name is a checkpoint of a training."""
    return _NAME.fullmatch(name) is not None


class DamagedCheckpoint(ValueError):
    """A checkpoint or file of weights is damaged; the message names the file and the reason."""


def write_arrays(path: Path, variables: Sequence[Any], record: dict[str, Any]) -> None:
    """Writes variables and a JSON record atomically, after a read-back check of the new file.

    Raises:
        OSError: if the file cannot be written or read back. The message names the file, which is
            not changed.
    """
    numbered = enumerate(_distinct(variables))
    arrays: dict[str, Any] = {_key(i, v.path): np.asarray(v) for i, v in numbered}
    arrays[_RECORD] = np.frombuffer(json.dumps(record).encode(), dtype=np.uint8)
    try:
        with atomic_binary(path) as stream:
            np.savez(stream, **arrays)
            stream.flush()
            _check_whole(Path(stream.name))
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def _check_whole(path: Path) -> None:
    """Raises OSError if an archive cannot be read or has a wrong checksum."""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    except zipfile.BadZipFile as error:
        raise OSError(errno.EIO, f"the file failed its read-back check ({error})") from error
    if damaged:
        raise OSError(
            errno.EIO, f"the file failed its read-back check (wrong checksum of {damaged})"
        )


def read_record(path: Path) -> dict[str, Any]:
    """The record of a file that `write_arrays` wrote; {} if it does not exist or is damaged."""
    try:
        return _read(path)[0]
    except (FileNotFoundError, DamagedCheckpoint):
        return {}


def read_arrays(path: Path, variables: Sequence[Any]) -> dict[str, Any]:
    """Assigns variables from a file that `write_arrays` wrote, and returns the file's record.

    Nothing is assigned unless the whole file can be read and fits the variables.

    Raises:
        ValueError: if the file is damaged or was written for other variables. The message names the
            file.
    """
    record, arrays = _read(path)
    variables = _distinct(variables)
    named = {_without_numbers(key): array for key, array in arrays.items()}
    found = [named.get(_without_numbers(_key(i, v.path))) for i, v in enumerate(variables)]
    _check_fit(path, variables, found)
    _assign(variables, found)
    return record


def read_weights(path: Path, weights: Sequence[Any]) -> dict[str, Any]:
    """Assigns a model's weights from a file of weights or from a checkpoint.

    Weights are matched by their paths only. The other content of a checkpoint, such as seeds and
    the optimiser's variables, is ignored. Nothing is assigned unless the whole file can be read and
    has exactly the weights of the model.

    Args:
        path: the file.
        weights: the `weights` of a `Seq2Seq`, whose paths are distinct.

    Returns:
        The file's record.

    Raises:
        ValueError: if the file is damaged or its weights do not fit the model. The message names
            the file. If weights do not fit, it also names the first of them, with both shapes if
            they differ.
    """
    record, arrays = _read(path)
    found = _only_weights(arrays)
    paths = [variable.path for variable in weights]
    _check_fit(path, weights, [found.get(name) for name in paths])
    for name, array in found.items():
        if name not in paths:
            raise ValueError(f"{path}: expected no weight {name}; got one of shape {array.shape}")
    _assign(weights, [found[name] for name in paths])
    return record


def read_shared_weights(path: Path, weights: Sequence[Any]) -> dict[str, Any]:
    """Assigns the weights that a file and a model share, for instance those of the encoder.

    Args:
        path, weights: see `read_weights`.

    Returns:
        The file's record with two more entries: `new`, the names of the weights that only the model
        has, and `left_out`, the names of the weights that only the file has.

    Raises:
        ValueError: if the file is damaged, shares no weight with the model, or has a weight of
            another shape.
    """
    record, arrays = _read(path)
    found = _only_weights(arrays)
    shared = [variable for variable in weights if variable.path in found]
    if not shared:
        raise ValueError(f"{path}: expected weights of this model; it shares none")
    given = [found.pop(variable.path) for variable in shared]
    _check_fit(path, shared, given)
    _assign(shared, given)
    taken = {variable.path for variable in shared}
    new = [variable.path for variable in weights if variable.path not in taken]
    return {**record, "new": new, "left_out": list(found)}


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the record of a file and its arrays by key, in the order of the file.

    Raises:
        DamagedCheckpoint: if the content of the file is damaged.
        OSError: if the file cannot be read for another reason.
    """
    try:
        with open(path, "rb") as stream, np.load(stream) as archive:
            damaged = archive.zip.testzip()  # a damaged header may hide a checksum from NumPy
            if damaged:
                raise ValueError(f"wrong checksum of {damaged}")
            record = json.loads(archive[_RECORD].tobytes())
            return record, {name: archive[name] for name in archive.files if name != _RECORD}
    except MemoryError:
        raise
    except Exception as error:  # a damaged archive can raise nearly anything
        if isinstance(error, OSError) and error.errno not in _DAMAGE:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise DamagedCheckpoint(f"{path}: damaged checkpoint ({_reason(error)})") from error


def _check_fit(path: Path, variables: Sequence[Any], arrays: Sequence[Any]) -> None:
    for array, variable in zip(arrays, variables, strict=True):
        if array is None:
            raise ValueError(f"{path}: expected the variable {variable.path}; there is none")
        if tuple(array.shape) != tuple(variable.shape):
            raise ValueError(
                f"{path}: expected {variable.path} of shape {tuple(variable.shape)}; "
                f"got {array.shape}"
            )


def _assign(variables: Sequence[Any], arrays: Sequence[Any]) -> None:
    for array, variable in zip(arrays, variables, strict=True):
        variable.assign(array)


def _only_weights(arrays: dict[str, Any]) -> dict[str, Any]:
    """The model's weights by path: all arrays before the optimiser's first one, without seeds."""
    weights = {}
    for key in sorted(arrays):
        path = key.partition(":")[2]
        if path.endswith("/iteration"):
            break
        if not path.endswith("seed_generator_state"):
            weights[path] = arrays[key]
    return weights


def _distinct(variables: Sequence[Any]) -> list[Any]:
    """Each variable once; Keras lists a seed generator once for every layer that shares it."""
    return list({id(variable): variable for variable in variables}.values())


def _key(index: int, path: str) -> str:
    return f"{index:04d}:{path}"


def _without_numbers(key: str) -> str:
    """Removes the numbers that Keras adds to default names, such as `adam_1`.

    The index at the front still tells variables apart.
    """
    return re.sub(r"_\d+(?=/)", "", key)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


class CheckpointFolder:
    """The checkpoints of a run, in the order of their updates.

    Args:
        folder: Path. The first `save` makes it if necessary.
        keep: int > 0. How many of the newest checkpoints are kept.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder = folder
        self.keep = keep
        self._damaged: set[Path] = set()  # what `restore` has skipped

    def paths(self) -> list[Path]:
        """The paths of the checkpoints, from the oldest to the newest."""
        if not self.folder.is_dir():
            return []
        return sorted(path for path in self.folder.iterdir() if _NAME.fullmatch(path.name))

    @property
    def last_whole(self) -> Path | None:
        """The newest checkpoint that `restore` has not skipped; None if there is none."""
        return next((path for path in self.paths()[::-1] if path not in self._damaged), None)

    @property
    def last_update(self) -> int:
        """The update of the newest checkpoint; 0 if there is none."""
        return max((int(path.stem.rpartition("-")[2]) for path in self.paths()), default=0)

    def save(self, update: int, variables: Sequence[Any], record: dict[str, Any]) -> Path:
        """Writes a checkpoint, then removes all but the newest `keep`; returns the path.

        Those that `restore` has skipped do not count; the skipped ones of earlier updates go, too.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"checkpoint-{update:09d}.npz"
        write_arrays(path, variables, {**record, "update": update})
        self._damaged.discard(path)  # if it was, it has been replaced
        earlier = [old for old in self.paths() if old <= path]
        whole = [old for old in earlier if old not in self._damaged]
        for old in earlier:
            if old not in whole[-self.keep :]:
                old.unlink()
        return path

    def restore(
        self, variables: Sequence[Any], read: Reader = read_arrays
    ) -> tuple[dict[str, Any] | None, list[str]]:
        """Restores the newest undamaged checkpoint.

        Args:
            variables: what `read` sets.
            read: `read_arrays`; `read_weights` or `read_shared_weights` if `variables` are only a
                model's weights.

        Returns:
            record: the record that was saved with the variables; None if there is no checkpoint.
            problems: one line for each damaged checkpoint that was skipped.

        Raises:
            ValueError: if there are checkpoints, but none of them can be read.
        """
        paths = self.paths()
        problems: list[str] = []
        missing: list[str] = []
        for path in reversed(paths):
            try:
                return read(path, variables), problems
            except FileNotFoundError as error:
                missing.append(str(error))
            except ValueError as error:
                self._damaged.add(path)
                problems.append(str(error))
        if self.paths() != paths:  # a training has meanwhile replaced them by newer ones
            return self.restore(variables, read)
        if paths:
            raise ValueError(
                f"no checkpoint in {self.folder} can be read: {[*problems, *missing][0]}"
            )
        return None, problems

"""How a preparation makes a data directory: whole or not at all, and once."""

import contextlib
import errno
import importlib.metadata
import json
import os
import platform
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from seq2seq_memattn._version import __version__
from seq2seq_memattn.data import manifest as manifests
from seq2seq_memattn.data.locks import locked
from seq2seq_memattn.data.manifest import Manifest
from seq2seq_memattn.text.files import naming_errors, open_output, remove_leftovers, sync_directory
from seq2seq_memattn.vocabulary import vocabulary_from_dict

WORK_NAME = "work"  # inside a preparation that can be gone on with: what only it needs
_STATE_NAME = "state.json"


def prepare_once(
    output_dir: str,
    task: str,
    options: Mapping[str, Any],
    write: Callable[[Path], Manifest],
) -> tuple[Manifest, bool]:
    """Returns the manifest of a data directory, made now unless it is there with the same options.

    The files are written into a temporary directory beside `output_dir`, which takes its name when
    all are on disk: an interrupted preparation leaves nothing that looks ready.

    Args:
        output_dir: the data directory; new, empty, or prepared before.
        task: name of the preparation.
        options: its options as JSON values, without `output_dir`.
        write: writes the files into the directory it gets and returns their manifest.

    Returns:
        The manifest, and whether it was made now.

    Raises:
        ValueError: if the directory is damaged, holds something else, or was prepared with other
            options; names those that differ.
    """
    final = Path(output_dir).resolve()
    if _is_prepared(final, output_dir):
        return _existing(output_dir, task, options), False
    _remove_leftovers(final)
    temporary = final.with_name(f".{final.name}.preparing-{os.getpid()}")
    temporary.mkdir()
    try:
        manifest = write(temporary)
        manifests.write_manifest(temporary, manifest)
        if not _take_name(temporary, final):  # another process was faster
            shutil.rmtree(temporary)
            return _existing(output_dir, task, options), False
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_directory(final.parent)
    return manifest, True


def prepare_resumably(
    output_dir: str,
    task: str,
    options: Mapping[str, Any],
    inputs: Callable[[], Any],
    write: Callable[[Path], Manifest],
) -> tuple[Manifest, bool]:
    """Does what `prepare_once` does, and goes on where an interrupted preparation stopped.

    The files are written into `.NAME.preparing-kept` beside the directory NAME. What `write` needs
    only to go on it keeps in the folder `WORK_NAME` there. A ValueError, that is bad input, removes
    all of it; a kill, a full disk or Ctrl-C leaves it for the next start.

    Args:
        output_dir, task, options: see `prepare_once`.
        inputs: finds the files that are read and returns what they are known by, as JSON values:
            the same for every start. What it raises leaves nothing that a start would go on with.
        write: writes the files into the directory it gets, or those that are not there yet, and
            returns their manifest.

    Returns:
        The manifest, and whether it was made now.

    Raises:
        ValueError: see `prepare_once`; also if another process is preparing this directory, or an
            interrupted preparation had other options or inputs.
    """
    final = Path(output_dir).resolve()
    if _is_prepared(final, output_dir):
        return _existing(output_dir, task, options), False
    kept = final.with_name(f".{final.name}.preparing-kept")
    kept.mkdir(exist_ok=True)
    with locked(kept, "preparing this directory"):
        if (kept / manifests.MANIFEST_NAME).exists():  # killed on the last steps
            manifest = _existing(str(kept), task, options)
        else:
            _check_state(kept, {"task": task, "options": dict(options)}, inputs)
            remove_leftovers(kept)
            remove_leftovers(kept / WORK_NAME)
            try:
                with naming_errors(str(kept)):
                    manifest = write(kept)
            except ValueError:
                shutil.rmtree(kept, ignore_errors=True)
                raise
            manifests.write_manifest(kept, manifest)
        shutil.rmtree(kept / WORK_NAME, ignore_errors=True)
        kept.replace(final)
    sync_directory(final.parent)
    return manifest, True


def _take_name(temporary: Path, final: Path) -> bool:
    """Renames a prepared directory; False if there is a prepared one of that name by now."""
    try:
        temporary.replace(final)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY or not (final / manifests.MANIFEST_NAME).exists():
            raise
        return False
    return True


def versions(*packages: str) -> dict[str, str]:
    """Returns the versions of what shapes prepared data, these packages among it."""
    return {
        "seq2seq_memattn": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in packages},
    }


def _is_prepared(final: Path, output_dir: str) -> bool:
    """Returns whether there is a data directory; ValueError if something else is in its place."""
    if (final / manifests.MANIFEST_NAME).exists():
        return True
    if final.exists() and not (final.is_dir() and not any(final.iterdir())):
        raise ValueError(
            f"{output_dir}: expected a new or empty directory, or a prepared one with its "
            f"{manifests.MANIFEST_NAME}"
        )
    final.parent.mkdir(parents=True, exist_ok=True)
    return False


def _check_state(directory: Path, state: dict[str, Any], inputs: Callable[[], Any]) -> None:
    """Writes what is being prepared; ValueError if the directory is of something else."""
    path = directory / WORK_NAME / _STATE_NAME
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        known = found.pop("inputs")
        # Options first, as they are read back: to find the inputs may take a download.
        if found != json.loads(json.dumps(state)) or known != inputs():
            raise ValueError(
                f"{directory}: an interrupted preparation with other options or input files; "
                "remove it, or repeat its command"
            )
        return
    try:
        state = {**state, "inputs": inputs()}
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    path.parent.mkdir(exist_ok=True)
    with open_output(path) as stream:
        json.dump(state, stream)


def _existing(output_dir: str, task: str, options: Mapping[str, Any]) -> Manifest:
    """Returns the manifest of a prepared directory; ValueError if its task or options differ."""
    manifest = manifests.read_manifest(output_dir)
    for vocabulary in (manifest.source_vocabulary, manifest.target_vocabulary):
        vocabulary_from_dict(vocabulary, Path(output_dir))  # whose files may be gone
    found = {"task": manifest.task, **manifest.options}
    wanted = {"task": task, **options}
    differences = [
        f"{name} (there {found.get(name)!r}, now {wanted.get(name)!r})"
        for name in sorted(found.keys() | wanted.keys())
        if found.get(name) != wanted.get(name)
    ]
    if differences:
        raise ValueError(
            f"{output_dir}: prepared with other options: {', '.join(differences)}; it is kept "
            "as it is, and another --output_dir takes the new one"
        )
    return manifest


def _remove_leftovers(final: Path) -> None:
    """Removes the temporary directories of preparations that were killed."""
    for leftover in final.parent.glob(f".{final.name}.preparing-*"):
        pid = leftover.name.rpartition("-")[2]
        # Ids come back, in containers soon: a leftover with this process's id is not its own.
        if pid.isdecimal() and (int(pid) == os.getpid() or not _is_running(int(pid))):
            shutil.rmtree(leftover, ignore_errors=True)


def _is_running(pid: int) -> bool:
    """Returns whether a process of this id exists on this machine."""
    with contextlib.suppress(PermissionError):  # someone else's: it exists
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True

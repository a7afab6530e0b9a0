"""How a preparation makes a data directory: whole or not at all, and once."""

import contextlib
import os
import platform
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from seq2seq_memattn._version import __version__
from seq2seq_memattn.data import manifest as manifests
from seq2seq_memattn.data.manifest import Manifest
from seq2seq_memattn.data.text_files import sync_directory


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
    if (final / manifests.MANIFEST_NAME).exists():
        return _existing(output_dir, task, options), False
    if final.exists() and not (final.is_dir() and not any(final.iterdir())):
        raise ValueError(
            f"{output_dir}: expected a new or empty directory, or a prepared one with its "
            f"{manifests.MANIFEST_NAME}"
        )
    final.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(final)
    temporary = final.with_name(f".{final.name}.preparing-{os.getpid()}")
    temporary.mkdir()
    try:
        manifest = write(temporary)
        manifests.write_manifest(temporary, manifest)
        temporary.replace(final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_directory(final.parent)
    return manifest, True


def versions() -> dict[str, str]:
    """Returns the versions of what shapes prepared data."""
    return {
        "seq2seq_memattn": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def _existing(output_dir: str, task: str, options: Mapping[str, Any]) -> Manifest:
    """Returns the manifest of a prepared directory; ValueError if its task or options differ."""
    manifest = manifests.read_manifest(output_dir)
    found = {"task": manifest.task, **manifest.options}
    wanted = {"task": task, **options}
    differences = [
        f"{name} (there {found.get(name)!r}, now {wanted.get(name)!r})"
        for name in sorted(found.keys() | wanted.keys())
        if found.get(name) != wanted.get(name)
    ]
    if differences:
        raise ValueError(f"{output_dir}: prepared with other options: {', '.join(differences)}")
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

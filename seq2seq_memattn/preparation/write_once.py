"""Makes data directories once and completely: a directory appears only when it is finished."""

import contextlib
import errno
import glob
import json
import shutil
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from seq2seq_memattn.data import manifest as manifests
from seq2seq_memattn.data.locks import locked
from seq2seq_memattn.data.manifest import Manifest
from seq2seq_memattn.text.files import (
    naming_errors,
    open_output,
    remove_leftovers,
    sync_directory,
)
from seq2seq_memattn.vocabulary import vocabulary_from_dict

WORK_NAME = "work"  # folder with files that are needed only to resume a preparation
_STATE_NAME = "state.json"
_PREPARING = "preparing this directory"


def prepare_once(
    output_dir: str,
    task: str,
    options: Mapping[str, Any],
    defaults: Mapping[str, Any],
    write: Callable[[Path], Manifest],
) -> tuple[Manifest, bool]:
    """Makes a data directory, unless it exists already with the same options.

    The files are written into a temporary directory beside `output_dir`. It is renamed to
    `output_dir` when all files are on disk, so an interrupted preparation leaves nothing that looks
    ready.

    Args:
        output_dir: the data directory; new, empty, or prepared before.
        task: name of the preparation.
        options: the options of the preparation as JSON values, without `output_dir`.
        defaults: the defaults of options.
        write: writes the files into the directory that it gets, and returns the manifest.

    Returns:
        The manifest, and whether the directory is new.

    Raises:
        ValueError: if the directory is damaged, holds something else, or was prepared with other
            options. In the last case, the message names the options that differ.
    """
    final = Path(output_dir).resolve()
    if _is_prepared(final, output_dir):
        return _existing(output_dir, task, options, defaults), False
    # Process ids would not do for the name: containers and hosts have the same ones.
    temporary = final.with_name(f".{final.name}.preparing-{uuid.uuid4().hex}")
    with contextlib.ExitStack() as held:
        # Without this lock, another start could remove the directory before it is locked.
        with locked(final.parent, "beginning a preparation", waits=True):
            _remove_leftovers(final)
            temporary.mkdir()
            held.enter_context(locked(temporary, _PREPARING))
        try:
            manifest = write(temporary)
            manifests.write_manifest(temporary, manifest)
            if not _take_name(temporary, final):  # another process was faster
                shutil.rmtree(temporary)
                return _existing(output_dir, task, options, defaults), False
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    sync_directory(final.parent)
    return manifest, True


def prepare_resumably(
    output_dir: str,
    task: str,
    options: Mapping[str, Any],
    defaults: Mapping[str, Any],
    inputs: Callable[[], Any],
    write: Callable[[Path], Manifest],
) -> tuple[Manifest, bool]:
    """Makes a data directory like `prepare_once`, and can resume an interrupted preparation.

    Beside the directory NAME, the files are written into an unfinished directory,
    `.NAME.preparing-kept`. Its folder `WORK_NAME` holds the files that are needed only to resume. A
    ValueError means bad input and removes the unfinished directory. After a kill, a full disk,
    Ctrl-C or the loss of an input file, the unfinished directory is kept for the next start.

    Args:
        output_dir, task, options, defaults: see `prepare_once`.
        inputs: finds the input files and returns JSON values that identify them, the same at every
            start. It is called a second time after the work, and should then identify the files
            that the first call found. If `inputs` raises at the first start, the unfinished
            directory is removed.
        write: writes the missing files into the directory that it gets, and returns the manifest.

    Returns:
        The manifest, and whether this call made the directory: True also if it resumed an earlier
        start, False if the directory was complete before.

    Raises:
        ValueError: see `prepare_once`; also if another process is preparing this directory, or an
            interrupted preparation had other options or inputs.
        OSError: if a file cannot be written, or an input file changed or went away meanwhile.
    """
    final = Path(output_dir).resolve()
    if _is_prepared(final, output_dir):
        return _existing(output_dir, task, options, defaults), False
    kept = final.with_name(f".{final.name}.preparing-kept")
    kept.mkdir(exist_ok=True)
    with locked(kept, _PREPARING):
        if _is_prepared(final, output_dir):  # by another process, while this one took the lock
            shutil.rmtree(kept, ignore_errors=True)  # the other may have renamed it to `final`
            return _existing(output_dir, task, options, defaults), False
        if (kept / manifests.MANIFEST_NAME).exists():  # an earlier start wrote it and was killed
            manifest = _existing(str(kept), task, options, defaults)
        else:
            known = _check_state(kept, {"task": task, "options": dict(options)}, inputs)
            remove_leftovers(kept)
            remove_leftovers(kept / WORK_NAME)
            try:
                with naming_errors(str(kept)):
                    manifest = write(kept)
            except ValueError:
                _check_unchanged(kept, known, inputs)
                shutil.rmtree(kept, ignore_errors=True)
                raise
            _check_unchanged(kept, known, inputs)
            manifests.write_manifest(kept, manifest)
        shutil.rmtree(kept / WORK_NAME, ignore_errors=True)
        kept.replace(final)
    sync_directory(final.parent)
    return manifest, True


def _take_name(temporary: Path, final: Path) -> bool:
    """Renames `temporary` to `final`; False if another process has prepared `final` meanwhile."""
    try:
        temporary.replace(final)
    except OSError as error:
        in_use = error.errno in (errno.ENOTEMPTY, errno.EEXIST)
        if not in_use or not (final / manifests.MANIFEST_NAME).exists():
            raise
        return False
    return True


def _is_prepared(final: Path, output_dir: str) -> bool:
    """Returns whether a directory is prepared; raises ValueError if it holds something else."""
    if (final / manifests.MANIFEST_NAME).exists():
        return True
    if final.exists() and not (final.is_dir() and not any(final.iterdir())):
        raise ValueError(
            f"{output_dir}: expected a new or empty directory, or a prepared one with its "
            f"{manifests.MANIFEST_NAME}"
        )
    if final.is_mount():  # a finished directory could not be renamed to it
        raise ValueError(f"{output_dir}: expected no mount point; name a new directory inside it")
    final.parent.mkdir(parents=True, exist_ok=True)
    return False


def _check_unchanged(directory: Path, known: Any, inputs: Callable[[], Any]) -> None:
    """Raises OSError if the input files are no longer those that `_check_state` found.

    The directory is kept if a file is missing, because the file may come back. The directory is
    removed if a file has changed.
    """
    try:
        is_same = inputs() == known
    except OSError as error:
        raise OSError(f"an input file went away while it was read: {error}") from None
    if not is_same:
        shutil.rmtree(directory, ignore_errors=True)
        raise OSError("an input file changed while it was read; start again when all are complete")


def _check_state(directory: Path, state: dict[str, Any], inputs: Callable[[], Any]) -> Any:
    """Records what is being prepared; returns what identifies the inputs.

    A directory without such a record is emptied first.

    Raises:
        ValueError: if the directory is from a preparation of another task, or with other options or
            inputs.
    """
    path = directory / WORK_NAME / _STATE_NAME
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        known = found.pop("inputs")
        # The options are compared first, because finding the inputs may need a download.
        if found != json.loads(json.dumps(state)) or known != inputs():
            raise ValueError(
                f"{directory}: an interrupted preparation with other options or input files; "
                "remove it, or repeat the command that began it"
            )
        return known
    for leftover in directory.iterdir():  # an interrupted removal; the state may have gone first
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()
    try:
        state = {**state, "inputs": inputs()}
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    path.parent.mkdir(exist_ok=True)
    with open_output(path) as stream:
        json.dump(state, stream)
    return state["inputs"]


def _existing(
    output_dir: str, task: str, options: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Manifest:
    """The manifest of a prepared directory; raises ValueError if its task or options differ."""
    manifest = manifests.read_manifest(output_dir)
    for vocabulary in (manifest.source_vocabulary, manifest.target_vocabulary):
        vocabulary_from_dict(vocabulary, Path(output_dir))  # raises if its file is missing
    truecase_model = manifest.text_form.get("truecase_model")
    if truecase_model and not (Path(output_dir) / truecase_model).exists():
        raise ValueError(f"{output_dir}: expected {truecase_model} in it")
    # An option that did not exist when the directory was made counts as its default.
    new = {name: value for name, value in defaults.items() if name in options}
    found = {"task": manifest.task, **new, **manifest.options}
    wanted = {"task": task, **options}
    differences = [
        f"{name} (there {found.get(name)!r}, now {wanted.get(name)!r})"
        for name in sorted(found.keys() | wanted.keys())
        if found.get(name) != wanted.get(name)
    ]
    if differences:
        raise ValueError(
            f"{output_dir}: prepared with other options: {', '.join(differences)}; choose another "
            "--output_dir for the new options"
        )
    return manifest


def _remove_leftovers(final: Path) -> None:
    """Removes the temporary directories of preparations that were killed."""
    for leftover in final.parent.glob(f".{glob.escape(final.name)}.preparing-{'[0-9a-f]' * 32}"):
        # A process that still runs has locked it. Another user's may not be ours to remove.
        with contextlib.suppress(ValueError, OSError), locked(leftover, _PREPARING) as is_locked:
            if is_locked:
                shutil.rmtree(leftover, ignore_errors=True)

"""Watches a model's export folder and serves its newest version."""

import contextlib
import ctypes
import gc
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from seq2seq_memattn.serving.errors import RequestError, not_found
from seq2seq_memattn.serving.layout import SAVED_MODEL, find_versions
from seq2seq_memattn.serving.models.loaded_model import LoadedModel

# Identifies the content of a version's folder. It changes if the folder or a file in it is
# replaced, or if more files have been copied to it.
Stamp = tuple[int, int, int]

# A version that could not be loaded is tried again after FIRST_PAUSE seconds. Each further pause is
# twice as long, up to LAST_PAUSE: memory or a file may have been missing only for a while.
FIRST_PAUSE, LAST_PAUSE = 30.0, 3600.0
# How often memory is released once a replaced model no longer exists. TensorFlow holds the graph of
# a function until Python's collector has freed the function, so the graph is left to the next run.
RELEASES = 3

_LOG = logging.getLogger(__name__)


class State(IntEnum):
    """The state of a version, numbered as in TensorFlow Serving's `ModelVersionStatus.State`."""

    LOADING = 20
    AVAILABLE = 30
    UNLOADING = 40
    END = 50


@dataclass(frozen=True)
class VersionStatus:
    """The status of one version.

    Args:
        version: number of the version.
        state: state of the version.
        error: why the version could not be loaded; "" if there was no error.
    """

    version: int
    state: State
    error: str = ""


@dataclass(frozen=True)
class _Failure:
    """A version that could not be loaded.

    Args:
        pause: seconds until it is tried again.
        due: when it is tried again, on the clock of `time.monotonic`.
    """

    pause: float
    due: float

    @classmethod
    def after(cls, previous: "_Failure | None") -> "_Failure":
        """The record of a failure now; `previous` is the last one of the same version, or None."""
        pause = min(2 * previous.pause, LAST_PAUSE) if previous else FIRST_PAUSE
        return cls(pause, time.monotonic() + pause)


class ServedModel:
    """Serves the newest version of a model, and replaces it when a newer one appears.

    While a newer version loads, the old one serves. Then new requests go to the new version; the
    old version answers the requests it has and is unloaded. If a version cannot be loaded, the
    error is reported and logged, and the old version continues to serve. This also holds if the
    files of the old version were replaced: the failed version then has the same number. The failed
    version is tried again after ever longer pauses. If the folder of the newest version is
    removed, the version before it is loaded again. If all folders are removed, the loaded version
    continues.

    Args:
        name: name of the model for clients.
        folder: export folder, with a folder for each version.
        poll_seconds: float > 0. Seconds between two checks of the folder.
        load: loads the model from a version's folder.

    Raises:
        ValueError: if there is no version, or the newest one cannot be loaded.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        poll_seconds: float,
        load: Callable[[Path], LoadedModel] = LoadedModel,
    ) -> None:
        self.name = name
        self._folder = folder
        self._poll_seconds = poll_seconds
        self._load = load
        self._changed = threading.Condition()
        self._in_use: dict[LoadedModel, int] = {}  # requests under way, by version
        self._statuses: dict[int, VersionStatus] = {}
        self._failures: dict[Stamp, _Failure] = {}
        self._replaced: weakref.ref[LoadedModel] | None = None
        self._releases = 0  # left to do
        self._ending = threading.Event()
        versions = find_versions(folder)
        if not versions:
            raise ValueError(f"{folder}: expected a folder of a version, such as 1, with a model")
        newest = max(versions)
        self._stamp = _stamp(versions[newest])  # before loading, to notice changes meanwhile
        self._current: LoadedModel = load(versions[newest])
        self._enter(self._current)
        self._thread = threading.Thread(target=self._watch, name=f"versions of {name}")
        self._thread.start()

    @contextlib.contextmanager
    def lease(self, version: int | None = None) -> Iterator[LoadedModel]:
        """Yields the model, which stays loaded until the block ends.

        Args:
            version: number of the version; None for the newest.

        Raises:
            RequestError: status 404 if the version is not served.
        """
        with self._changed:
            model = self._current
            if version not in (None, model.version):
                raise self.unknown_version(version)
            self._in_use[model] += 1
        try:
            yield model
        finally:
            with self._changed:
                self._in_use[model] -= 1
                self._changed.notify_all()

    def statuses(self, version: int | None = None) -> list[VersionStatus]:
        """The status of one version, or of all versions seen so far.

        Raises:
            RequestError: status 404 if the version does not exist.
        """
        with self._changed:
            if version is None:
                return list(self._statuses.values())
            if version not in self._statuses:
                raise self.unknown_version(version)
            return [self._statuses[version]]

    @property
    def version(self) -> int:
        """The number of the version that new requests go to."""
        return self._current.version

    def unknown_version(self, version: int | None) -> RequestError:
        """The error for a version that does not exist."""
        return not_found(f"Servable not found for request: Specific({self.name}, {version})")

    def close(self) -> None:
        """Stops watching the folder, after any load under way has finished."""
        self._ending.set()
        with self._changed:
            self._changed.notify_all()
        self._thread.join()

    def _watch(self) -> None:
        said = ""
        while not self._ending.wait(self._poll_seconds):
            try:
                self.look()
                said = ""
            except OSError as error:  # for instance if the folder is missing for a moment
                if str(error) != said:
                    _LOG.warning("%s: %s", self._folder, error)
                said = str(error)

    def look(self) -> None:
        """Loads and serves the newest version, unless it is the current one."""
        self._free_replaced()
        versions = find_versions(self._folder)
        stamps = {version: _stamp(folder) for version, folder in versions.items()}
        newest = max(
            (v for v, stamp in stamps.items() if not self._is_waiting(stamp)), default=None
        )
        current = self._current.version
        if newest is None:
            return
        if stamps[newest] == self._stamp:
            if self._statuses[newest].error:  # damaged files were replaced by the old ones
                self._report(VersionStatus(newest, State.AVAILABLE))
            return
        if newest < current and current in versions:  # the current one's new files failed to load
            return
        if newest != current:
            self._report(VersionStatus(newest, State.LOADING))
        model = self._loaded(versions[newest], stamps[newest])
        if model is None:
            _release_memory()  # frees what was loaded before the failure
            return
        self._stamp = stamps[newest]
        self._replaced, self._releases = weakref.ref(self._current), RELEASES
        self._switch(model)
        self._free_replaced()

    def _loaded(self, folder: Path, stamp: Stamp) -> LoadedModel | None:
        """Loads a version; if that fails, reports the error and returns None."""
        try:
            return self._load(folder)
        except ValueError as error:
            _LOG.warning("%s", error)
            version = int(folder.name)
            state = State.AVAILABLE if version == self._current.version else State.END
            self._report(VersionStatus(version, state, str(error)))
            self._failures[stamp] = _Failure.after(self._failures.get(stamp))
            return None

    def _free_replaced(self) -> None:
        """Releases the memory of a replaced model; also at later looks, until nothing is left."""
        if self._replaced is not None and self._releases:
            self._releases -= self._replaced() is None
            _release_memory()

    def _is_waiting(self, stamp: Stamp) -> bool:
        """Whether a version failed and must not be tried again yet."""
        return stamp in self._failures and time.monotonic() < self._failures[stamp].due

    def _switch(self, model: LoadedModel) -> None:
        """Serves a new model, and unloads the old one when no request uses it."""
        with self._changed:
            old, self._current = self._current, model
            self._enter(model)
            if old.version != model.version:
                self._report(VersionStatus(old.version, State.UNLOADING))
            self._changed.wait_for(lambda: not self._in_use[old] or self._ending.is_set())
            if not self._in_use[old]:
                del self._in_use[old]
            if old.version != model.version:
                self._report(VersionStatus(old.version, State.END))

    def _enter(self, model: LoadedModel) -> None:
        with self._changed:
            self._in_use[model] = 0
            self._report(VersionStatus(model.version, State.AVAILABLE))

    def _report(self, status: VersionStatus) -> None:
        with self._changed:  # reentrant: a thread may enter a Condition again
            self._statuses[status.version] = status


def _release_memory() -> None:
    """Returns the memory of an unloaded model to the system."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):  # only glibc has this function
        # Freed blocks are scattered over the heaps of many threads. Without this call, a server
        # would keep the memory of one unloaded model, and grow slowly with each further one.
        ctypes.CDLL(None).malloc_trim(0)


def _stamp(folder: Path) -> Stamp:
    try:
        inode = (folder / SAVED_MODEL).stat().st_ino
        files = [(str(file), file.stat()) for file in sorted(folder.rglob("*")) if file.is_file()]
    except FileNotFoundError:  # removed meanwhile
        raise
    except OSError:  # loading it fails too, and says why
        return int(folder.name), 0, 0
    content = hash(tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in files))
    return int(folder.name), inode, content

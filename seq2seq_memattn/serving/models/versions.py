"""The versions of a model in its export folder: the newest is served, whenever it appears."""

import contextlib
import gc
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from seq2seq_memattn.serving.errors import RequestError, not_found
from seq2seq_memattn.serving.layout import SAVED_MODEL, find_versions
from seq2seq_memattn.serving.models.loaded_model import LoadedModel

# A version as it was found: replaced by another of its number, or as more of it has been copied, it
# is another one.
Stamp = tuple[int, int, int, int]

_LOG = logging.getLogger(__name__)


class State(IntEnum):
    """Where a version is in its life; numbers are those of ModelVersionStatus.State."""

    LOADING = 20
    AVAILABLE = 30
    UNLOADING = 40
    END = 50


@dataclass(frozen=True)
class VersionStatus:
    """The status of one version.

    Args:
        version: its number.
        state: where it is in its life.
        error: why it could not be loaded; "" if it could.
    """

    version: int
    state: State
    error: str = ""


class ServedModel:
    """A model whose newest version is loaded, served, and replaced by a newer one.

    A newer version is loaded while the old one serves. From then on requests go to the new one; the
    old one answers what it has, and is unloaded. One that cannot be loaded is reported and logged,
    and the old one serves on, also where it has the same number. Where the newest version is taken
    away, the one before it is loaded again; the last one serves on.

    Args:
        name: of the model, for clients.
        folder: its export folder, with a folder for each version.
        poll_seconds: float > 0. How long a new version waits to be seen, at most.
        load: makes the model of a version's folder.

    Raises:
        ValueError: if there is no version, or the newest cannot be loaded.
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
        self._in_use: dict[LoadedModel, int] = {}  # requests of each version
        self._statuses: dict[int, VersionStatus] = {}
        self._failed: set[Stamp] = set()
        self._ending = threading.Event()
        versions = find_versions(folder)
        if not versions:
            raise ValueError(f"{folder}: expected a folder of a version, such as 1, with a model")
        newest = max(versions)
        self._stamp = _stamp(versions[newest])  # before: what comes meanwhile is a change
        self._current: LoadedModel = load(versions[newest])
        self._enter(self._current)
        self._thread = threading.Thread(target=self._watch, name=f"versions of {name}")
        self._thread.start()

    @contextlib.contextmanager
    def lease(self, version: int | None = None) -> Iterator[LoadedModel]:
        """The model, which is not unloaded before the block ends.

        Args:
            version: number of the one that is wanted; None for the newest.

        Raises:
            RequestError: of status 404, if that version is not served.
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
        """The status of one version, or of all that were seen.

        Raises:
            RequestError: of status 404, if there is no such version.
        """
        with self._changed:
            if version is None:
                return list(self._statuses.values())
            if version not in self._statuses:
                raise self.unknown_version(version)
            return [self._statuses[version]]

    @property
    def version(self) -> int:
        """The one that requests go to."""
        return self._current.version

    def unknown_version(self, version: int | None) -> RequestError:
        """The error for a version that is not there."""
        return not_found(f"Servable not found for request: Specific({self.name}, {version})")

    def close(self) -> None:
        """Ends the watching; a version that is being loaded is loaded to its end."""
        self._ending.set()
        with self._changed:
            self._changed.notify_all()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ending.wait(self._poll_seconds):
            with contextlib.suppress(OSError):  # such as a folder that is away for a moment
                self.look()

    def look(self) -> None:
        """Loads the newest version and serves it, if it is another one than now."""
        versions = find_versions(self._folder)
        stamps = {version: _stamp(folder) for version, folder in versions.items()}
        sound = [version for version in versions if stamps[version] not in self._failed]
        newest = max(sound, default=None)
        current = self._current.version
        if newest is None or stamps[newest] == self._stamp:
            return
        if newest < current and current in versions:  # its files are damaged: what is loaded is not
            return
        if newest != current:
            self._report(VersionStatus(newest, State.LOADING))
        try:
            model = self._load(versions[newest])
        except ValueError as error:
            _LOG.warning("%s", error)
            state = State.AVAILABLE if newest == current else State.END
            self._report(VersionStatus(newest, state, str(error)))
            self._failed.add(stamps[newest])
            return
        self._stamp = stamps[newest]
        self._switch(model)
        gc.collect()  # the old one's functions and variables refer to each other

    def _switch(self, model: LoadedModel) -> None:
        """Serves another model from now on, and unloads the old one when it is no longer used."""
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
        with self._changed:  # a Condition may be entered again by its own thread
            self._statuses[status.version] = status


def _stamp(folder: Path) -> Stamp:
    graph = (folder / SAVED_MODEL).stat()
    num_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return int(folder.name), graph.st_ino, graph.st_mtime_ns, num_bytes

import gc
import os
import shutil
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.serving.errors import RequestError
from seq2seq_memattn.serving.layout import find_versions
from seq2seq_memattn.serving.models import versions
from seq2seq_memattn.serving.models.versions import ServedModel, State


class FakeModel:
    """Replaces a model loaded from a version's folder.

    Args:
        folder: the version's folder; the content of its file says whether it can be loaded.
    """

    def __init__(self, folder: Path) -> None:
        text = (folder / "saved_model.pb").read_text()
        if text == "damaged":
            raise ValueError(f"{folder}: damaged")
        self.version = int(folder.name)
        self.text = text


def add_version(folder: Path, version: int, text: str = "sound") -> None:
    (folder / str(version)).mkdir(parents=True, exist_ok=True)
    (folder / str(version) / "saved_model.pb").write_text(text)


def serve(folder: Path, poll_seconds: float = 1000.0) -> ServedModel:
    load: Any = FakeModel
    return ServedModel("model", folder, poll_seconds, load)


def states(model: ServedModel) -> dict[int, str]:
    return {status.version: status.state.name for status in model.statuses()}


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.fixture(scope="module", autouse=True)
def quick_collections() -> Iterator[None]:
    """Keeps imported objects out of the garbage collection at each switch, as a server does."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    add_version(tmp_path / "exports", 1)
    return tmp_path / "exports"


def test_only_complete_folders_with_a_number_are_versions(folder: Path) -> None:
    add_version(folder, 10)
    for name in ("2", "01", "-3", "x", "٣", "9" * 30, "4.tmp"):
        (folder / name).mkdir()
        if name != "2":
            (folder / name / "saved_model.pb").touch()
    (folder / "5").touch()
    assert find_versions(folder).keys() == {1, 10}


def test_the_newest_version_is_served(folder: Path) -> None:
    add_version(folder, 9)
    add_version(folder, 10)
    model = serve(folder)
    with model.lease() as leased:
        assert leased.version == 10
    with model.lease(10) as leased:
        assert leased.version == 10
    for wrong in (9, 11):
        with pytest.raises(RequestError, match=rf"Specific\(model, {wrong}\)"), model.lease(wrong):
            pass
    assert states(model) == {10: "AVAILABLE"} and model.version == 10
    model.close()


@pytest.mark.parametrize("has_folder", [False, True])
def test_a_folder_without_versions_is_an_error(tmp_path: Path, has_folder: bool) -> None:
    folder = tmp_path / "exports"
    if has_folder:
        folder.mkdir()
    with pytest.raises((ValueError, OSError), match="exports"):
        serve(folder)


def test_a_damaged_version_is_an_error_at_the_start(folder: Path) -> None:
    add_version(folder, 2, "damaged")
    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="damaged"):
        serve(folder)
    assert not set(threading.enumerate()) - before


def test_a_version_that_cannot_be_read_is_reported_and_the_next_one_is_served(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, stat = folder / "2", Path.stat

    def denied(path: Path, **options: Any) -> Any:
        if path.parent == closed:  # these tests may run as root, whom modes do not stop
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    def load(of: Path) -> Any:
        if of == closed:
            raise ValueError(f"{of}: the model cannot be loaded: Permission denied")
        return FakeModel(of)

    monkeypatch.setattr(Path, "stat", denied)
    model = ServedModel("model", folder, 1000.0, load)
    add_version(folder, 2)
    model.look()
    (_, status) = model.statuses()
    assert (status.version, status.state) == (2, State.END)
    assert "Permission denied" in status.error and model.version == 1
    add_version(folder, 3)
    model.look()
    assert model.version == 3
    model.close()


def test_memory_is_given_back_after_a_version_that_failed_and_one_that_was_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trimmed: list[int] = []
    library = SimpleNamespace(malloc_trim=trimmed.append)
    monkeypatch.setattr(versions.ctypes, "CDLL", lambda name: library)
    model = serve(folder)
    add_version(folder, 2, "damaged")
    model.look()
    assert trimmed == [0] and model.version == 1
    add_version(folder, 3)
    model.look()
    assert trimmed == [0, 0] and model.version == 3
    for _ in range(10):
        model.look()
    assert len(trimmed) == 1 + versions.RELEASES
    model.close()


def test_a_new_version_is_found_and_the_old_one_answers_what_it_has(folder: Path) -> None:
    model = serve(folder, poll_seconds=0.01)
    with model.lease() as old:
        add_version(folder, 2)
        wait_until(lambda: states(model) == {1: "UNLOADING", 2: "AVAILABLE"})
        with model.lease() as new:
            assert (old.version, new.version) == (1, 2)
        assert states(model)[1] == "UNLOADING"
        assert model.version == 2
    wait_until(lambda: states(model)[1] == "END")
    assert model.statuses(1)[0].error == ""
    model.close()


def test_a_model_that_was_replaced_is_not_kept(folder: Path) -> None:
    model = serve(folder)
    with model.lease() as first:
        old = weakref.ref(first)
    del first
    add_version(folder, 2)
    model.look()
    assert old() is None
    model.close()


def test_a_model_that_was_referred_to_at_its_end_is_freed_at_a_later_look(folder: Path) -> None:
    model = serve(folder)
    with model.lease() as first:
        first.itself = first  # type: ignore[attr-defined]  # as functions of a model form cycles
    old = weakref.ref(first)
    add_version(folder, 2)
    model.look()
    del first
    assert old() is not None
    model.look()
    assert old() is None
    model.close()


def test_what_a_replaced_model_held_in_tensorflow_is_freed_at_a_later_look(folder: Path) -> None:
    class Cycle:
        def __init__(self) -> None:
            self.itself = self

    held = [Cycle()]  # as TensorFlow holds the graph of a function until the function is freed
    graph = weakref.ref(held[0])
    model = serve(folder)
    with model.lease() as first:
        first.function = Cycle()  # type: ignore[attr-defined]
        weakref.finalize(first.function, held.clear)  # type: ignore[attr-defined]
    del first
    add_version(folder, 2)
    model.look()
    assert graph() is not None and not held
    model.look()
    assert graph() is None
    model.close()


def test_a_damaged_new_version_is_reported_and_the_old_one_serves_on(folder: Path) -> None:
    model = serve(folder)
    add_version(folder, 2, "damaged")
    for _ in range(2):
        model.look()
        with model.lease() as leased:
            assert leased.version == 1
        (status,) = model.statuses(2)
        assert status.state is State.END and "damaged" in status.error
    add_version(folder, 2, "was half copied before")
    model.look()
    assert states(model) == {1: "END", 2: "AVAILABLE"}
    assert model.statuses(2)[0].error == ""
    model.close()


def test_a_version_that_could_not_be_loaded_is_tried_again_after_longer_and_longer_pauses(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, tries = [0.0], []
    monkeypatch.setattr(versions.time, "monotonic", lambda: now[0])

    def load(version: Path) -> Any:
        if version.name == "2":
            tries.append(now[0])
            if len(tries) < 5:
                raise ValueError(f"{version}: there is no memory for try {len(tries)}")
        return FakeModel(version)

    model = ServedModel("model", folder, 1000.0, load)
    add_version(folder, 2)
    for seconds in range(0, 500, 10):
        now[0] = float(seconds)
        model.look()
        (status,) = model.statuses(2)
        if len(tries) < 5:
            assert f"no memory for try {len(tries)}" in status.error
    assert tries == [0, 30, 90, 210, 450]
    assert states(model) == {1: "END", 2: "AVAILABLE"} and not status.error
    model.close()


def test_the_pause_before_the_next_try_has_a_bound(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, tries = [0.0], []
    monkeypatch.setattr(versions.time, "monotonic", lambda: now[0])

    def load(version: Path) -> Any:
        tries.append(now[0])
        return FakeModel(version)

    model = ServedModel("model", folder, 1000.0, load)
    add_version(folder, 2, "damaged")
    for minutes in range(0, 600, 10):
        now[0] = 60.0 * minutes
        model.look()
    pauses = np.diff(tries[1:])
    assert max(pauses) == versions.LAST_PAUSE and len(tries) > 10
    model.close()


def test_where_the_newest_version_is_taken_away_the_one_before_serves_again(folder: Path) -> None:
    add_version(folder, 2)
    model = serve(folder)
    shutil.rmtree(folder / "2")
    model.look()
    assert states(model) == {1: "AVAILABLE", 2: "END"}
    shutil.rmtree(folder / "1")
    model.look()
    with model.lease() as leased:
        assert leased.version == 1
    model.close()


def test_a_version_that_is_replaced_is_loaded_again(folder: Path) -> None:
    model = serve(folder)
    add_version(folder, 1, "another")
    model.look()
    with model.lease() as leased:
        assert leased.text == "another"  # type: ignore[attr-defined]
    assert states(model) == {1: "AVAILABLE"}
    model.close()


def test_weights_that_are_replaced_by_others_of_the_same_size_are_loaded(folder: Path) -> None:
    weights = folder / "1" / "variables" / "weights"
    weights.parent.mkdir(parents=True, exist_ok=True)
    weights.write_text("old")
    model = serve(folder)
    with model.lease() as leased:
        before = leased
    weights.write_text("new")
    os.utime(weights, (1, 1))  # as copied with its time
    model.look()
    with model.lease() as leased:
        assert leased is not before
    weights.unlink()
    (folder / "1" / "saved_model.pb").rename(folder / "elsewhere")  # removed while it is looked at
    model.look()
    assert not model.statuses() or states(model) == {1: "AVAILABLE"}
    model.close()


def test_a_damaged_copy_of_what_is_served_is_reported_and_what_is_loaded_serves_on(
    folder: Path,
) -> None:
    add_version(folder, 2)
    model = serve(folder)
    add_version(folder, 2, "damaged")
    for _ in range(2):
        model.look()
        with model.lease() as leased:
            assert (leased.version, leased.text) == (2, "sound")  # type: ignore[attr-defined]
        assert states(model) == {2: "AVAILABLE"}
        assert "damaged" in model.statuses(2)[0].error
    model.close()


def test_the_error_of_damaged_files_goes_when_the_loaded_ones_are_back(folder: Path) -> None:
    model = serve(folder)
    (folder / "1").rename(folder / "away")
    add_version(folder, 1, "damaged")
    model.look()
    assert "damaged" in model.statuses(1)[0].error
    shutil.rmtree(folder / "1")
    (folder / "away").rename(folder / "1")
    model.look()
    assert states(model) == {1: "AVAILABLE"} and not model.statuses(1)[0].error
    model.close()


def test_a_version_that_was_loaded_while_it_was_copied_is_loaded_again(folder: Path) -> None:
    model = serve(folder)
    with model.lease() as before:
        pass
    (folder / "1" / "later").write_text("what came after the graph")
    model.look()
    with model.lease() as after:
        assert after is not before
    model.look()
    with model.lease() as again:
        assert again is after
    model.close()


def test_what_is_copied_while_the_first_version_is_loaded_is_not_missed(folder: Path) -> None:
    def load(version: Path) -> Any:
        (version / "later").write_text("what came meanwhile")
        return FakeModel(version)

    model = ServedModel("model", folder, 1000.0, load)
    with model.lease() as before:
        pass
    model.look()
    with model.lease() as after:
        assert after is not before
    model.close()


def test_a_folder_that_is_away_for_a_moment_changes_nothing(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = serve(folder, poll_seconds=0.005)
    for version in (2, 3):
        caplog.clear()
        moved = folder.rename(folder.with_name("moved"))
        wait_until(lambda: bool(caplog.records))  # it has been missed
        moved.rename(folder)
        add_version(folder, version)
        wait_until(lambda version=version: states(model).get(version) == "AVAILABLE")
    model.close()


def test_closing_waits_for_nobody_and_leaves_no_thread(folder: Path) -> None:
    before = set(threading.enumerate())
    model = serve(folder, poll_seconds=0.01)
    with model.lease():
        add_version(folder, 2)
        wait_until(lambda: states(model).get(2) == "AVAILABLE")
        model.close()
    assert not set(threading.enumerate()) - before


def test_many_switches_under_load_lose_no_request(folder: Path) -> None:
    model = serve(folder, poll_seconds=0.001)
    is_over, versions, errors = threading.Event(), set(), []

    def ask() -> None:
        while not is_over.is_set():
            try:
                with model.lease() as leased:
                    versions.add(leased.version)
                    time.sleep(0.001)
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for version in range(2, 12):
        add_version(folder, version)
        wait_until(lambda newest=version: newest in versions)  # type: ignore[misc]
    is_over.set()
    for thread in threads:
        thread.join()
    assert errors == [] and max(versions) == 11
    wait_until(lambda: set(states(model).values()) == {"END", "AVAILABLE"})
    model.close()

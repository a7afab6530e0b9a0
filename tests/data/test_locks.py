import errno
import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from seq2seq_memattn.data.locks import locked

HOLD = """
import sys
from pathlib import Path
from seq2seq_memattn.data.locks import locked

with locked(Path(sys.argv[1]), "at it"):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_directory_is_of_one_process_until_that_is_gone(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == b"locked\n"
        with (
            pytest.raises(ValueError, match=f"{tmp_path}: another process is writing it"),
            locked(tmp_path, "writing it"),
        ):
            pytest.fail("both have it")
        other.kill()
    with (
        locked(tmp_path, "writing it"),
        pytest.raises(ValueError, match="another process is writing it"),
        locked(tmp_path, "writing it"),
    ):
        pytest.fail("one process has it twice")
    with locked(tmp_path, "writing it"):
        pass


def test_who_waits_gets_the_lock_when_the_other_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, notes = threading.Event(), []

    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:

        def end_other() -> None:
            killed.set()
            other.kill()

        def note(text: str) -> None:
            notes.append(text)
            threading.Timer(0.2, end_other).start()

        monkeypatch.setattr("seq2seq_memattn.data.locks.print_note", note)
        assert other.stdout is not None and other.stdout.readline() == b"locked\n"
        with locked(tmp_path, "writing it", waits=True):
            assert killed.is_set()
    assert notes == [f"{tmp_path}: waiting for another process that is writing it"]


def test_an_error_of_the_work_ends_the_lock_and_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError), locked(tmp_path, "writing it"):
        raise BlockingIOError
    with locked(tmp_path, "writing it"):
        pass


def test_without_locks_the_work_is_done_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(number: int) -> None:
        def flock(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", flock)

    fails(errno.ENOLCK)
    with locked(tmp_path, "writing it"):
        pass
    fails(errno.EIO)
    with pytest.raises(OSError, match="Input/output"), locked(tmp_path, "writing it"):
        pytest.fail("a broken disk is no file system without locks")

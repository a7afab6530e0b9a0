import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from seq2seq_memattn.preparation.workers import worker_pool
from tests.running import is_running, run_python

ADVICE = "with fewer lines"


def double(number: int) -> int:
    return 2 * number


def write_pid(path: str) -> None:
    Path(path).write_text(str(os.getpid()))


def kill(number: int) -> None:
    os.kill(os.getpid(), number)


def test_tasks_run_in_processes_that_were_started(tmp_path: Path) -> None:
    with worker_pool(2, ADVICE, write_pid, str(tmp_path / "pid")) as pool:
        assert list(pool.map(double, range(5))) == [0, 2, 4, 6, 8]
    assert int((tmp_path / "pid").read_text()) != os.getpid()


def test_a_worker_that_dies_is_an_error_of_one_line() -> None:
    with (
        pytest.raises(OSError, match="a worker process died") as caught,
        worker_pool(1, ADVICE) as pool,
    ):
        pool.submit(kill, signal.SIGKILL).result()
    assert str(caught.value).endswith(
        "run the same command again to resume, with fewer lines if necessary"
    )
    assert "\n" not in str(caught.value)


def test_a_workers_own_error_comes_through() -> None:
    with pytest.raises(ValueError, match="invalid literal"), worker_pool(1, ADVICE) as pool:
        pool.submit(int, "x").result()


def test_an_error_of_the_block_ends_tasks_at_once() -> None:
    started = time.monotonic()
    with pytest.raises(KeyError), worker_pool(1, ADVICE) as pool:
        pool.submit(double, 1).result()  # now the process is running
        pool.submit(time.sleep, 60)
        raise KeyError
    assert time.monotonic() - started < 30
    assert not multiprocessing.active_children()


def test_ctrl_c_does_not_end_a_worker() -> None:
    with worker_pool(1, ADVICE) as pool:
        pool.submit(kill, signal.SIGINT).result()
        assert pool.submit(double, 4).result() == 8


KILLED = """
import os, signal
from seq2seq_memattn.preparation.workers import worker_pool
from tests.preparation.test_workers import write_pid

with worker_pool(1, "", write_pid, {path!r}) as pool:
    pool.submit(abs, 1).result()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    process = run_python("-c", KILLED.format(path=str(path)))
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()
    worker = int(path.read_text())
    deadline = time.monotonic() + 30
    while is_running(worker):
        assert time.monotonic() < deadline, f"process {worker} still runs"
        time.sleep(0.05)

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.reproduction.jobs import Commands, run_command
from seq2seq_memattn.compute.hardware import num_cores

# Modules that the commands below run. WAITING and MEETING write a file when they are running.
WAITING = """
import signal, sys, time
def end(number, frame):
    open(sys.argv[1], "w").write(str(number))
    sys.exit(128 + number)
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, end)
open(sys.argv[1], "w").write("ready")
time.sleep(60)
"""
MEETING = """
import os, pathlib, sys, time
mine, others = map(pathlib.Path, sys.argv[1:])
mine.write_text("ready")
started = time.monotonic()
while not others.exists() and time.monotonic() < started + 50:
    time.sleep(0.01)
print("{\\"met\\": %s, \\"threads\\": %s}" % (
    str(others.exists()).lower(), os.environ["TF_NUM_INTRAOP_THREADS"]
))
"""
FAILING = "import sys; sys.exit(1)"
SAYING = """
import sys
from tqdm import tqdm
for word in tqdm(["begins", "validated"], mininterval=0.0):
    tqdm.write(word, file=sys.stderr)
sys.stderr.write("\\nends")
print("{}")
"""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {
        "waiting": WAITING,
        "meeting": MEETING,
        "failing": FAILING,
        "saying": SAYING,
    }.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def when_there(paths: list[Path], action: Callable[[], None]) -> None:
    """Runs `action` in a thread as soon as all files exist and have content.

    The thread gives up after a minute: without an end, it would keep the tests from ending.
    """

    def wait() -> None:
        deadline = time.monotonic() + 60
        while not all(path.exists() and path.read_text() for path in paths):
            if time.monotonic() > deadline:
                return
            time.sleep(0.01)
        action()

    threading.Thread(target=wait).start()


def send(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_command_that_is_run_too(tmp_path: Path, number: int) -> None:
    """The command gets SIGTERM, because it would count one Ctrl-C that arrives twice as two."""
    before = signal.getsignal(number)
    when_there([tmp_path / "ready"], send(number))
    started = time.monotonic()
    with pytest.raises(SystemExit) as raised:
        run_command(["waiting", str(tmp_path / "ready")])
    assert raised.value.code == 128 + number
    assert time.monotonic() - started < 50
    assert signal.getsignal(number) is before
    assert (tmp_path / "ready").read_text() == str(int(signal.SIGTERM))


def test_jobs_run_at_a_time_and_share_the_cores(tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("first", "second")]
    pairs = [files, files[::-1]]
    with Commands(jobs=2) as commands:
        found = commands.map(lambda pair: commands.run(["meeting", *pair], "x"), pairs)
    share = max(1, num_cores() // 2)
    assert found == [{"met": True, "threads": share}] * 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_are_in_the_order_of_the_items(jobs: int) -> None:
    def work(seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    with Commands(jobs) as commands:
        assert commands.map(work, [0.2, 0.0, 0.1]) == [0.2, 0.0, 0.1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_and_nothing_more_is_begun(tmp_path: Path, number: int) -> None:
    files = [tmp_path / name for name in ("first", "second", "third")]
    when_there(files[:2], send(number))
    started = time.monotonic()
    with pytest.raises(SystemExit) as raised, Commands(jobs=2) as commands:
        commands.map(lambda file: commands.run(["waiting", str(file)], "x"), files)
    assert raised.value.code == 128 + number
    assert time.monotonic() - started < 50
    assert not files[2].exists()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_signal_after_the_last_command_is_heeded_too(jobs: int) -> None:
    with pytest.raises(SystemExit) as raised, Commands(jobs) as commands:
        commands.map(lambda number: os.kill(os.getpid(), number), [signal.SIGTERM])
    assert raised.value.code == 128 + signal.SIGTERM


def test_an_error_ends_it_when_what_runs_has_ended() -> None:
    failed, ended = threading.Event(), []

    def work(name: str) -> None:
        if name == "failing":
            try:
                commands.run([name], name)
            finally:
                failed.set()
        failed.wait(50)
        time.sleep(0.2)
        ended.append(name)

    with (
        pytest.raises(ValueError, match="^failing failed with exit status 1$"),
        Commands(jobs=2) as commands,
    ):
        commands.map(work, ["failing", "other", "never"])
    assert ended == ["other"]


def test_what_commands_say_is_shown_under_their_names_without_bars(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with Commands(jobs=2) as commands:
        commands.map(lambda name: commands.run(["saying"], name), ["a", "b"])
    shown = capfd.readouterr().err.splitlines()
    for name in ("a", "b"):
        said = [line for line in shown if line.startswith(f"{name}:")]
        assert said == [f"{name}: begins", f"{name}: validated", f"{name}: ends"]
    assert len(shown) == 6

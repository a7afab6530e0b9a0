import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from seq2seq_memattn.commands import launch_local
from seq2seq_memattn.commands.shared import cli
from tests.running import ROOT

# Each process writes the cluster into a file named after its task. Then it ends, waits or fails,
# depending on its second argument.
PROGRAM = """
import json, os, signal, sys, time
folder, what = sys.argv[1:]
config = json.loads(os.environ["TF_CONFIG"])
name = f"{config['task']['type']}{config['task']['index']}"
with open(f"{folder}/{name}", "a") as stream:
    print(json.dumps(config["cluster"]), file=stream)
print(name, "is here")
if what == "wait" or what.startswith(name):
    try:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        open(f"{folder}/{name}.ready", "w").close()
        status = what.partition(":")[2]
        sys.exit(int(status)) if status else time.sleep(60)
    finally:
        open(f"{folder}/{name}.ended", "w").close()
"""


def launch(folder: Path, what: str, *flags: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [
            sys.executable,
            *("-m", "experiments.launch_local", *flags, "--"),
            *(sys.executable, "-c", PROGRAM, str(folder), what),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until_ready(folder: Path) -> None:
    """Waits until both of two workers wait for a signal."""
    deadline = time.monotonic() + 60
    while not all((folder / f"worker{i}.ready").exists() for i in (0, 1)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_each_process_knows_its_task_and_all_addresses(tmp_path: Path) -> None:
    process = launch(tmp_path, "nothing", "--num_workers=3")
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["worker0", "worker1", "worker2"]
    (cluster,) = {path.read_text() for path in tmp_path.iterdir()}
    addresses = json.loads(cluster)["worker"]
    assert len(set(addresses)) == 3
    # The first process prints the command's result; the others' lines begin with their names.
    assert stdout == "worker0 is here\n"
    assert "worker 2: worker2 is here" in stderr


def test_processes_use_the_cpu() -> None:
    program = "import os, sys; sys.exit(os.environ['CUDA_VISIBLE_DEVICES'] != '-1')"
    assert launch_local.LocalCluster([sys.executable, "-c", program], 2).run() == 0


def test_parameter_servers_end_with_the_chief(tmp_path: Path) -> None:
    # The chief ends when it has seen the others, who wait.
    seen = "all(os.path.exists(f'{folder}/{one}.ready') for one in ('worker0', 'ps0'))"
    program = PROGRAM.replace(
        'if what == "wait"', f'while name == "chief0" and not {seen}: pass\nif name != "chief0"'
    )
    command = [sys.executable, "-c", program, str(tmp_path), ""]
    started = time.monotonic()
    assert launch_local.LocalCluster(command, 1, 1).run() == 0
    assert time.monotonic() - started < 30
    assert (tmp_path / "worker0.ended").exists()
    assert (tmp_path / "ps0.ended").exists()


def test_when_one_fails_the_others_are_ended(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # The others wait.
    program = PROGRAM.replace(
        'status = what.partition(":")[2]',
        'while name == "worker1" and not os.path.exists(f"{folder}/worker0.ready"): pass\n        '
        'status = "7" if name == "worker1" else ""',
    )
    command = [sys.executable, "-c", program, str(tmp_path), "wait"]
    started = time.monotonic()
    assert launch_local.LocalCluster(command, 2, patience=0.5).run() == 7
    assert time.monotonic() - started < 30
    assert (tmp_path / "worker0.ended").exists()
    assert "worker 1 ended with status 7" in capfd.readouterr().err


def test_a_chief_goes_on_without_one_of_its_workers(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # The chief ends two seconds after worker 1 has failed.
    program = PROGRAM.replace(
        'status = what.partition(":")[2]', 'status = "7" if name == "worker1" else ""'
    ).replace(
        'if what == "wait"',
        """while name == "chief0" and not os.path.exists(f"{folder}/worker1.ended"): pass
time.sleep(2 * (name == "chief0"))
if name != "chief0\"""",
    )
    command = [sys.executable, "-c", program, str(tmp_path), "wait"]
    assert launch_local.LocalCluster(command, 2, 1, patience=0.1).run() == 0
    assert capfd.readouterr().err.count("worker 1 ended with status 7") == 1


def test_signals_are_handed_on(tmp_path: Path) -> None:
    process = launch(tmp_path, "wait", "--num_workers=2", "--restarts=3")
    wait_until_ready(tmp_path)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 143, stderr
    assert all((tmp_path / f"worker{i}.ended").exists() for i in (0, 1))
    assert (tmp_path / "worker0").read_text().count("\n") == 1  # not restarted


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_reach_what_a_script_runs(number: int, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    (tmp_path / "program.py").write_text(PROGRAM)
    script.write_text(f"'{sys.executable}' '{tmp_path}/program.py' '{tmp_path}' wait\necho done\n")
    command = ["-m", "experiments.launch_local", "--num_workers=2", "--", "bash", str(script)]
    ignored = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
    process = subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    signal.signal(signal.SIGHUP, ignored)
    with process:
        wait_until_ready(tmp_path)
        process.send_signal(number)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 143, said.decode()
    assert all((tmp_path / f"worker{i}.ended").exists() for i in (0, 1))


def test_a_signal_while_processes_start_reaches_those_that_start_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = subprocess.Popen

    def interrupted(*arguments: Any, **options: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return start(*arguments, **options)

    monkeypatch.setattr(launch_local.subprocess, "Popen", interrupted)
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    began = time.monotonic()
    assert launch_local.LocalCluster(command, 2, 0, patience=60.0).run() == 128 + signal.SIGTERM
    assert time.monotonic() - began < 30.0


def test_all_are_started_again_as_often_as_was_asked_for(tmp_path: Path) -> None:
    process = launch(tmp_path, "worker0:75", "--num_workers=2", "--restarts=2")
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 75
    for name in ("worker0", "worker1"):
        assert (tmp_path / name).read_text().count("\n") == 3
    assert stderr.count("starting all again") == 2


def test_the_flags_reach_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    class Cluster:
        caught = 0

        def __init__(self, *arguments: Any) -> None:
            given.append(arguments)

        def run(self) -> int:
            return 0

    monkeypatch.setattr(launch_local, "LocalCluster", Cluster)
    flags = cli.Flags()
    launch_local.define(flags)
    words = ["--num_workers=3", "--num_parameter_servers=2", "--patience=7", "--", "train", "--x"]
    with pytest.raises(SystemExit) as ended:
        launch_local.main(flags.parse(words))
    assert ended.value.code == 0
    assert given == [(["train", "--x"], 3, 2, 7.0)]


def test_without_a_command_it_says_what_is_missing() -> None:
    process = subprocess.run(
        [sys.executable, "-m", "experiments.launch_local", "--num_workers=2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1
    assert process.stderr.startswith("error: expected -- and a command")

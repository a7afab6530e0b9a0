import dataclasses
import functools
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.data.model_sizes import FROM_DATA
from tests.running import ROOT, error_lines, run_here, run_python

COMMAND = """
import dataclasses
import sys
from typing import Literal

from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.notes import print_note


@dataclasses.dataclass(frozen=True)
class Options:
    size: int = dataclasses.field(metadata={"help": "in tokens"})
    rate: float = dataclasses.field(default=0.5, metadata={"help": "a fraction"})
    is_fast: bool = dataclasses.field(default=False, metadata={"help": "faster"})
    kind: Literal["lstm", "gru"] = dataclasses.field(default="lstm", metadata={"help": "cell"})
    name: str = dataclasses.field(default="", metadata={"help": "a name", "group": "Names"})


def define(flags):
    flags.options(Options)
    if ACCEPTS:
        flags.positional("WORDS")


def main(arguments):
    options = cli.options_from(arguments, Options)
    ACTION
    print_note("working")
    cli.print_result(dataclasses.asdict(options) | {"arguments": arguments.rest})


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])
"""


def run_command(
    *arguments: str, action: str = "pass", accepts: bool = False
) -> subprocess.CompletedProcess[bytes]:
    script = COMMAND.replace("ACTION", action).replace("ACCEPTS", str(accepts))
    return run_python("-c", script, *arguments)


def test_flags_become_the_option_record_and_the_result_is_the_last_line() -> None:
    process = run_command("--size=3", "--rate=0.25", "--is_fast", "--kind=gru", "--name=x y")
    assert process.returncode == 0
    assert json.loads(process.stdout) == {
        "size": 3,
        "rate": 0.25,
        "is_fast": True,
        "kind": "gru",
        "name": "x y",
        "arguments": [],
    }
    assert process.stderr == b"working\n"


def test_help_lists_the_flags_with_their_meaning_and_default() -> None:
    text = run_command("--help").stdout.decode()
    assert "--size: in tokens" in text
    assert "--rate: a fraction" in text
    assert "--rate: a fraction (default: 0.5)" in text
    assert "--size: in tokens (required)" in text
    assert text.startswith("usage: ") and "--size=... [flags]" in text
    groups = text.split("\n\n")
    assert [group.split(":\n")[0] for group in groups[-3:]] == ["Flags", "Names", "Other"]
    assert "--name: a name" in groups[-2] and "--verbosity: " in groups[-1]


@pytest.mark.parametrize("options", [ModelConfig, TrainingConfig])
def test_help_of_training_says_the_default_of_each_option(options: type) -> None:
    text = " ".join(help_of_training().split())
    for field in dataclasses.fields(options):
        if field.name not in FROM_DATA:
            (flag,) = re.findall(rf"--(?:\[no\])?{field.name}: .*?(?= --|$)", text)
            default = re.escape(json.dumps(field.default))
            expected = rf"\(default: {default}; a configuration may set another\)"
            assert re.search(expected, flag), flag


@functools.cache
def help_of_training() -> str:
    return run_here("experiments.train", "--help").stdout.decode()


def test_help_lists_the_flags_that_commands_share() -> None:
    text = run_here("experiments.translate", "--help").stdout.decode()
    for flag in ("run_dir", "input", "beam_size", "batch_size", "checkpoint"):
        assert f"--{flag}: " in text


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("copy_task", ("max_length", "output_dir", "seed")),
        ("parallel_text", ("train_source", "vocab_size", "kind", "processes", "output_dir")),
        ("multi30k", ("pair", "vocab_size", "source_dir")),
    ],
)
def test_help_lists_the_flags_of_commands_that_prepare_data(
    command: str, names: tuple[str, ...]
) -> None:
    text = run_here(f"data_prep.{command}", "--help").stdout.decode()
    for name in names:
        assert f"--{name}: " in text


def test_arguments_are_handed_on_where_a_command_accepts_them() -> None:
    process = run_command("one", "--size=3", "--", "--two", accepts=True)
    assert json.loads(process.stdout)["arguments"] == ["one", "--two"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size=3", "--colour=red"], "Unknown command line flag 'colour'"),
        (["--size=many"], "--size=many"),
        (["--size=3", "--kind=rnn"], "--kind=rnn"),
        ([], "--size"),
        (["--size=3", "extra"], "expected only flags, got the argument 'extra'"),
    ],
)
def test_wrong_flags_give_one_line_and_a_failing_status(arguments: list[str], message: str) -> None:
    process = run_command(*arguments)
    assert process.returncode == 1
    assert process.stdout == b""
    (line,) = process.stderr.decode().splitlines()
    assert line.startswith("error: ")
    assert message in line


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("raise ValueError('two\\nlines')", "two lines"),
        ("open('/absent/file')", "/absent/file: No such file or directory"),
        ("b'\\xff'.decode()", "'utf-8' codec can't decode byte 0xff"),
        ("raise ValueError", "ValueError"),
        ("raise OSError('disk')", "disk"),
    ],
)
def test_bad_input_gives_one_line_and_no_traceback(action: str, message: str) -> None:
    process = run_command("--size=3", action=action)
    assert process.returncode == 1
    (line,) = process.stderr.decode().splitlines()
    assert line.startswith(f"error: {message}")


def test_the_traceback_is_there_for_whoever_asks() -> None:
    process = run_command("--size=3", "--verbosity=1", action="raise ValueError('why')")
    assert process.returncode == 1
    assert "Traceback" in process.stderr.decode()
    assert error_lines(process) == ["error: why"]


def test_a_mistake_in_the_program_keeps_its_traceback() -> None:
    process = run_command("--size=3", action="raise RuntimeError('a bug')")
    assert process.returncode != 0
    assert "Traceback" in process.stderr.decode()


@pytest.mark.parametrize(
    ("number", "message"),
    [(signal.SIGINT, "error: interrupted\n"), (signal.SIGTERM, "error: terminated\n")],
)
def test_an_interrupted_command_says_so_and_leaves_nothing_half_written(
    tmp_path: Path, number: signal.Signals, message: str
) -> None:
    text_files = "from seq2seq_memattn.text import files"
    kill = f"import os; os.kill(os.getpid(), {number.value})"
    script = f"{text_files}\nwith files.open_output('{tmp_path}/a'):\n    {kill}"
    process = run_command("--size=3", action=f"exec({script!r})")
    assert process.returncode == 128 + number
    assert process.stderr.decode() == message
    assert not list(tmp_path.iterdir())


def test_an_interrupted_command_may_say_more() -> None:
    process = run_command("--size=3", action="raise KeyboardInterrupt('at once')")
    assert process.returncode == 128 + signal.SIGINT
    assert process.stderr.decode() == "error: at once\n"


def test_a_reader_that_goes_away_gives_one_line() -> None:
    script = COMMAND.replace("ACTION", "[print('x' * 99) for _ in range(9999)]")
    script = script.replace("ACCEPTS", "False")
    with subprocess.Popen(
        [sys.executable, "-c", script, "--size=3"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        errors = process.stderr.read().decode()
    assert process.returncode == 1
    assert errors == "error: Broken pipe\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_under_standard_output_gives_one_line() -> None:
    script = COMMAND.replace("ACTION", "pass").replace("ACCEPTS", "False")
    with open("/dev/full", "wb") as full:
        process = subprocess.run(
            [sys.executable, "-c", script, "--size=3"],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
            stdout=full,
            stderr=subprocess.PIPE,
        )
    message = b"working\nerror: standard output: No space left on device\n"
    assert (process.returncode, process.stderr) == (1, message)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize(
    ("action", "flag", "status"),
    [("pass", "--size=3", 0), ("raise ValueError('x')", "--size=3", 1), ("pass", "--size=x", 1)],
)
def test_a_full_disk_under_standard_error_changes_no_status(
    action: str, flag: str, status: int
) -> None:
    script = COMMAND.replace("ACTION", action).replace("ACCEPTS", "False")
    with open("/dev/full", "wb") as full:
        process = subprocess.run(
            [sys.executable, "-c", script, flag],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
            stdout=subprocess.PIPE,
            stderr=full,
        )
    assert process.returncode == status
    assert bool(process.stdout) == (status == 0)


def test_a_device_without_enough_memory_gives_one_line() -> None:
    action = "raise RuntimeError('RESOURCE_EXHAUSTED: failed to allocate 9 GiB')"
    process = run_command("--size=3", action=action)
    message = b"error: the memory of the device is full; smaller batches need less\n"
    assert (process.returncode, process.stderr) == (1, message)


def test_an_error_is_one_line_if_standard_output_was_closed_at_the_start() -> None:
    script = COMMAND.replace("ACTION", "raise ValueError('no')").replace("ACCEPTS", "False")
    process = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" --size=3 >&-', sys.executable, script],
        cwd=ROOT,
        stderr=subprocess.PIPE,
    )
    assert (process.returncode, process.stderr) == (1, b"error: no\n")


def test_a_result_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    result = {
        "bleu": np.float32(0.5),
        "steps": np.int64(3),
        "path": Path("a/b"),
        "text": "x\ny\u2028",
    }
    cli.print_result(result)
    captured = capsys.readouterr()
    assert captured.out.endswith("\n") and len(captured.out.splitlines()) == 1
    assert json.loads(captured.out) == {
        "bleu": 0.5,
        "steps": 3,
        "path": "a/b",
        "text": "x\ny\u2028",
    }


def test_a_result_goes_to_standard_error_where_output_carries_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cli.print_result({"lines": 2}, to_stderr=True)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", '{"lines": 2}\n')


def test_a_result_that_json_cannot_say_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        cli.print_result({"loss": float("nan")})

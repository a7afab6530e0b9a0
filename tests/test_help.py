"""Every command has a `--help` that says what it does and lists its flags."""

import importlib
import re
import subprocess
import sys

import pytest

from seq2seq_memattn import __version__
from seq2seq_memattn.__main__ import command_names
from tests.running import ROOT, error_lines, run_here, run_python


def commands() -> dict[str, str]:
    """The arguments of `python -m` for each command, and the module that it runs."""
    found = {
        f"seq2seq_memattn {name}": f"seq2seq_memattn.commands.{name}" for name in command_names()
    }
    for folder in ("experiments", "experiments/benchmarks", "data_prep"):
        for path in sorted((ROOT / folder).glob("*.py")):
            text = path.read_text(encoding="utf-8")
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if launched := re.search(r"^    launch\((\w+)\)$", text, re.MULTILINE):
                package = re.search(rf"^from (\S+) import {launched[1]}$", text, re.MULTILINE)
                assert package
                found[module] = f"{package[1]}.{launched[1]}"
            elif "cli.launch(sys.modules[__name__])" in text:
                found[module] = module
    return found


COMMANDS = commands()


def test_the_overview_and_the_version_are_printed_and_other_names_refused() -> None:
    overview = run_here("seq2seq_memattn")
    for name in command_names():
        assert f"\n  {name} " in overview.stdout.decode()
    assert run_here("seq2seq_memattn", "--help").stdout == overview.stdout
    assert run_here("seq2seq_memattn", "--version").stdout.decode() == f"{__version__}\n"
    wrong = run_here("seq2seq_memattn", "nonsense")
    (line,) = error_lines(wrong)
    assert wrong.returncode == 1 and line.endswith("; got 'nonsense'")


def test_the_overview_needs_no_extra() -> None:
    extras = "'matplotlib', 'tensorflow', 'jax', 'sentencepiece', 'sacremoses', 'nltk', 'starlette'"
    absent = f"import sys; sys.modules.update(dict.fromkeys(({extras})))"
    done = run_python("-c", f"{absent}; from seq2seq_memattn.__main__ import main; main()")
    assert done.returncode == 0 and b"draw_alignment" in done.stdout, done.stderr.decode()


def test_help_that_nobody_can_read_ends_with_one_line() -> None:
    for words in ((), ("--version",), ("train", "--help")):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "seq2seq_memattn", *words],
                cwd=ROOT,
                stdout=full,
                stderr=subprocess.PIPE,
                check=False,
            )
        assert done.returncode == 1
        assert done.stderr == b"error: standard output: No space left on device\n"


def test_every_kind_of_command_is_among_them() -> None:
    some = {"experiments.train", "experiments.demo", "data_prep.wmt17", "seq2seq_memattn train"}
    assert some <= set(COMMANDS)
    assert {"experiments.benchmarks.serving", "experiments.benchmarks.compare_checkouts"} <= set(
        COMMANDS
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_what_a_command_does_and_lists_its_flags(command: str) -> None:
    done = run_here(*command.split(), "--help")
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    usage, about, _ = text.split("\n\n", 2)
    name = command.replace("seq2seq_memattn ", "memattn ")
    assert usage.startswith(f"usage: {name if ' ' in name else f'python -m {name}'} ")
    described = importlib.import_module(COMMANDS[command]).__doc__ or ""
    assert described.strip().startswith(about.partition("\n")[0])
    listed = re.findall(r"^  --(?:\[no\])?(\w+): *(.*)", text, re.MULTILINE)
    assert listed
    assert all(meaning for name, meaning in listed)


def test_help_waits_for_no_backend() -> None:
    modules = sorted(set(COMMANDS.values()))
    program = (
        "import importlib, sys\n"
        f"for module in {modules}:\n"
        "    importlib.import_module(module)\n"
        "    if loaded := {'keras', 'tensorflow', 'jax'} & set(sys.modules):\n"
        "        sys.exit(f'{module} imports {loaded}')"
    )
    assert run_python("-c", program).stderr == b""


def test_a_configuration_that_is_none_is_an_error_before_a_backend_starts() -> None:
    program = (
        "import sys\n"
        "from seq2seq_memattn.__main__ import main\n"
        "sys.argv = ['memattn', 'train', '--config=typo', '--data_dir=D', '--run_dir=R']\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    print({'keras', 'tensorflow', 'jax'} & set(sys.modules))"
    )
    done = run_python("-c", program)
    assert b"error: --config: expected a preset" in done.stderr
    assert done.stdout == b"set()\n"

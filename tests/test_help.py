"""Every command has a `--help` that says what it does and lists its flags."""

import re

import pytest
from absl import flags

from tests.running import ROOT, run_here

IS_COMMAND = re.compile(r"^ +(cli\.run|run|run_\w+)\(", re.MULTILINE)


def commands() -> list[str]:
    """The modules that are commands: what is run of them parses flags."""
    found = []
    for package in ("experiments", "data_prep"):
        for path in sorted((ROOT / package).glob("*.py")):
            _, main, block = path.read_text().partition('if __name__ == "__main__":\n')
            if main and IS_COMMAND.search(block):
                found.append(f"{package}.{path.stem}")
    return found


def test_every_kind_of_command_is_among_them() -> None:
    some = {"experiments.demo", "experiments.speed", "experiments.reproduce"}
    assert some <= set(commands())
    assert len(commands()) > 12


@pytest.mark.parametrize("command", commands())
def test_help_says_what_a_command_does_and_lists_its_flags(command: str) -> None:
    before = set(flags.FLAGS)
    done = run_here(command, "--help")
    text = done.stdout.decode()
    assert done.stderr == b""
    described = (ROOT / f"{command.replace('.', '/')}.py").read_text().split('"""')[1]
    assert text.startswith(described.strip().split("\n")[0])
    listed = re.findall(r"^  --(?:\[no\])?(\w+): *(.*)", text, re.MULTILINE)
    assert listed
    assert all(meaning for name, meaning in listed)

    assert set(flags.FLAGS) == before

"""Installs other systems: python -m experiments.benchmarks.peers.set_up pytorch.

The arguments are systems: pytorch, opennmt_py, tensorflow_addons. Each system gets a virtual
environment of its own with the package versions listed in this file, on Python 3.11, the latest
version that TensorFlow Addons supports.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.reproduction.results import ROOT
from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.notes import print_note

ENVIRONMENTS = "runs/peers"  # default folder of the environments
TORCH = ("numpy==2.4.6", "torch==2.13.0")
# The arguments of each call of `pip install`, in order.
PACKAGES: dict[str, tuple[tuple[str, ...], ...]] = {
    "pytorch": (TORCH,),
    "opennmt_py": (
        TORCH,
        (  # packages that OpenNMT-py imports
            *("configargparse==1.9.0", "fasttext-wheel==0.9.2", "pyahocorasick==2.3.1"),
            *("pyonmttok==1.38.1", "rapidfuzz==3.14.6", "regex==2026.11.19", "spacy==3.8.18"),
        ),
        ("--no-deps", "OpenNMT-py==3.5.1"),  # its dependencies include PyTorch below 2.3
    ),
    # Not tensorflow-cpu, which cannot load the compiled operations of TensorFlow Addons.
    "tensorflow_addons": (("tensorflow==2.15.1", "tensorflow-addons==0.23.0"),),
}


def environment_python(environments: Path, name: str) -> Path:
    """Returns the path of Python in a system's environment."""
    return environments / name / "bin" / "python"


def commands(name: str, environments: Path, python: str) -> list[list[str]]:
    """Returns the commands that make a system's environment, in order."""
    own = str(environment_python(environments, name))
    install = [own, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    made = [python, "-m", "venv", str(environments / name)]
    return [made, *([*install, *packages] for packages in PACKAGES[name])]


def set_up(names: Sequence[str], environments: Path, python: str) -> None:
    """Makes the environments; existing ones are completed.

    Raises:
        ValueError: if a command fails; the message has the last line of its standard error.
    """
    for name in names:
        for command in commands(name, environments, python):
            print_note(" ".join(command))
            done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
            if done.returncode:
                last = done.stderr.strip().split("\n")[-1]
                raise ValueError(f"{name}: exit status {done.returncode}: {last}")


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.string("environments", ENVIRONMENTS, "folder of the environments")
    flags.string("python", "python3.11", "Python of the environments, a command or a path")
    flags.positional("SYSTEM...")


def main(arguments: cli.Arguments) -> None:
    """Makes the environments of the systems that the arguments name."""
    unknown = [name for name in arguments.rest if name not in PACKAGES]
    if unknown or not arguments.rest:
        got = unknown[0] if unknown else "nothing"
        raise ValueError(f"expected names of systems ({', '.join(PACKAGES)}); got {got}")
    set_up(arguments.rest, Path(arguments.environments).absolute(), arguments.python)


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])

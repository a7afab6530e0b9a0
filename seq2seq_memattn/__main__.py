"""The program `memattn NAME [flags]`, also `python -m seq2seq_memattn NAME [flags]`."""

import importlib
import pkgutil
import sys
from typing import NoReturn

from seq2seq_memattn import commands
from seq2seq_memattn._version import __version__
from seq2seq_memattn.commands.shared import cli

PROGRAM = "memattn"


def command_names() -> list[str]:
    """The names of all commands: the modules of `commands`."""
    found = pkgutil.iter_modules(commands.__path__)
    return sorted(module.name for module in found if not module.ispkg)


def main() -> NoReturn:
    """Runs the command that the first argument names."""
    name, *words = sys.argv[1:] or ["--help"]
    if name in ("--help", "-h", "help"):
        cli.print_text(_overview())
        sys.exit(0)
    if name == "--version":
        cli.print_text(f"{__version__}\n")
        sys.exit(0)
    if name not in command_names():
        cli.fail(f"expected one of {', '.join(command_names())}; got {name!r}")
    command = importlib.import_module(f"seq2seq_memattn.commands.{name}")
    cli.run(command, words, f"{PROGRAM} {name}")


def _overview() -> str:
    """The text of `memattn --help`: each command with the beginning of its docstring."""
    lines = [f"usage: {PROGRAM} NAME [flags]", ""]
    for name in command_names():
        about = importlib.import_module(f"seq2seq_memattn.commands.{name}").__doc__ or ""
        lines.append(f"  {name:<22}{about.strip().splitlines()[0].partition(':')[0].rstrip('.')}")
    return "\n".join([*lines, "", f"{PROGRAM} NAME --help lists the flags of a command."]) + "\n"


if __name__ == "__main__":
    main()

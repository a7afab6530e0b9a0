"""Times for tables: runs a command of `experiments.speed` and keeps its rows in a file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.reproduction.jobs import run_command
from experiments.reproduction.pages import code_block, commit_in_words
from experiments.reproduction.results import portable, provenance, read_json, write_json
from seq2seq_memattn.notes import print_note


def measure_times(
    path: Path, arguments: Sequence[str], prepare: Callable[[], object] = lambda: None
) -> None:
    """Runs a command of `experiments.speed`, unless the file has the times of this command.

    Args:
        path: the JSON file. It is written again if it is from another command. It gets the fields
            of `provenance`, with the measuring command as "command", and "rows".
        arguments: arguments of `experiments.speed`.
        prepare: called before the measurement.
    """
    command = f"python -m {' '.join(map(portable, ['experiments.speed', *arguments]))}"
    if not path.exists() or read_json(path)["command"] != command:
        prepare()
        print_note(f"timing: {command}")
        timed = run_command(["experiments.speed", *arguments])
        made = {**provenance(timed["hardware"]), "command": command}
        write_json(path, {**made, "rows": timed["rows"]})


def origin(found: dict[str, Any]) -> str:
    """The text of a page about the origin of times: hardware, commit and command."""
    commit = commit_in_words(found["commit"])
    return f"{found['hardware']}, commit {commit}:\n\n{code_block(found['command'])}"

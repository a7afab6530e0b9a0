"""Times for tables: runs a command of `experiments.speed` and keeps its rows in a file."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.reproduction.jobs import run_command
from experiments.reproduction.pages import code_block, commit_in_words
from experiments.reproduction.results import commit, in_words, provenance, read_json, write_json
from seq2seq_memattn.notes import print_note


def measure_times(
    path: Path, arguments: Sequence[str], prepare: Callable[[], object] = lambda: None
) -> None:
    """Runs a command of `experiments.speed`, unless the file has the times of this command.

    Args:
        path: the JSON file. It is replaced if another command wrote it. It contains the fields
            of `provenance`, with the measuring command as "command", and "rows".
        arguments: arguments of `experiments.speed`.
        prepare: called before the measurement.
    """
    words = ["experiments.speed", *arguments]
    if not is_of_command(path, words):
        prepare()
        print_note(f"timing: {in_words(words)}")
        begun = commit()  # work may take hours, in which the checkout may change
        timed = run_command(words)
        made = {**provenance(timed["hardware"]), "commit": begun, "command": in_words(words)}
        write_json(path, {**made, "rows": timed["rows"]})


def is_of_command(path: Path, words: Sequence[str]) -> bool:
    """Whether a file exists and is the result of a command, given without `python -m`.

    Folders and the name of the output may differ.
    """
    return path.exists() and _what(read_json(path)["command"]) == _what(in_words(words))


def _what(command: str) -> str:
    """A command without its output, and with paths cut to their last part."""
    return re.sub(r"[^\s=,]*/", "", re.sub(r" --output=\S*", "", command))


def origin(found: dict[str, Any]) -> str:
    """The text with which a page tells where times are from: hardware, commit and command."""
    commit = commit_in_words(found["commit"])
    return f"{found['hardware']}, commit {commit}:\n\n{code_block(found['command'])}"

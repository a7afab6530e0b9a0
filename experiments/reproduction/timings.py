"""Times that tables show: a command of `experiments.speed`, whose rows a file keeps."""

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
    """Measures by a command of `experiments.speed`, unless the file has its times.

    Args:
        path: of the JSON file, which is written anew if it is another command's. It gets what
            `provenance` says, with the command that measured as "command", and "rows".
        arguments: of `experiments.speed`.
        prepare: called before it measures.
    """
    command = f"python -m {' '.join(map(portable, ['experiments.speed', *arguments]))}"
    if not path.exists() or read_json(path)["command"] != command:
        prepare()
        print_note(f"timing: {command}")
        timed = run_command(["experiments.speed", *arguments])
        made = {**provenance(timed["hardware"]), "command": command}
        write_json(path, {**made, "rows": timed["rows"]})


def origin(found: dict[str, Any]) -> str:
    """What a page says of where times are from."""
    commit = commit_in_words(found["commit"])
    return f"{found['hardware']}, commit {commit}:\n\n{code_block(found['command'])}"

"""Times that tables show: a command of `experiments.speed`, whose rows a file keeps."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.reproduction.jobs import run_command
from experiments.reproduction.results import portable, provenance, read_json, write_json
from seq2seq_memattn.notes import print_note


def timings(
    path: Path, arguments: Sequence[str], prepare: Callable[[], object] = lambda: None
) -> dict[str, Any]:
    """What a command of `experiments.speed` measured, now unless the file has it.

    Args:
        path: of the JSON file, which is written anew if it is another command's.
        arguments: of `experiments.speed`.
        prepare: called before it measures.

    Returns:
        dict: what `provenance` says, with the command that measured as "command", and "rows".
    """
    command = f"python -m {' '.join(map(portable, ['experiments.speed', *arguments]))}"
    if not path.exists() or read_json(path)["command"] != command:
        prepare()
        print_note(f"timing: {command}")
        timed = run_command(["experiments.speed", *arguments])
        made = {**provenance(timed["hardware"]), "command": command}
        write_json(path, {**made, "rows": timed["rows"]})
    return read_json(path)


def origin(found: dict[str, Any]) -> str:
    """What a page says of where times are from."""
    return f"{found['hardware']}, commit {found['commit']}; `{found['command']}`"

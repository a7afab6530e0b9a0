"""Results as JSON files, with a record of how they were obtained."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.compute.hardware import hardware
from seq2seq_memattn.text.files import open_output

ROOT = Path(__file__).resolve().parents[2]

Result = dict[str, Any]
Results = Sequence[Result]
Group = TypeVar("Group")


def provenance(computed_on: str) -> dict[str, Any]:
    """Command, commit, backend, hardware and versions of the running program.

    Args:
        computed_on: the result of `hardware()` in the process that did the work.
    """
    import keras  # not before the flags are read

    from seq2seq_memattn.runs.directory import versions

    return {
        "command": _command(),
        "commit": commit(),
        "backend": keras.config.backend(),
        "hardware": computed_on,
        "versions": versions(),
    }


def _command() -> str:
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    program = f"python -m {spec.name}" if spec else Path(sys.argv[0]).name
    return " ".join([program, *map(portable, sys.argv[1:])])


def grouped(rows: Results, key: Callable[[Result], Group]) -> dict[Group, list[Result]]:
    """Rows by what `key` returns for them, in the order of their first rows."""
    groups: dict[Group, list[Result]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def in_words(words: Sequence[str]) -> str:
    """A command, given without `python -m`, as results record it."""
    return f"python -m {' '.join(map(portable, words))}"


def portable(argument: str) -> str:
    """An argument without this machine's folders: absolute paths are cut to their last part."""
    flag, equals, values = argument.rpartition("=")
    paths = (
        Path(value).name if Path(value).is_absolute() else value for value in values.split(",")
    )
    return flag + equals + ",".join(paths)


def commit(checkout: Path = ROOT) -> str:
    """The commit of a checkout, with "+" if files outside results/ differ from it; or "unknown"."""
    if not (checkout / ".git").exists():  # an installation, perhaps inside another repository
        return "unknown"
    git = ["git", "-C", str(checkout)]
    try:
        head = subprocess.run(
            [*git, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no", "--", ":!results"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}+" if changed else head


def report(rows: Results, output: str | None) -> None:
    """Ends a command: prints its rows with their provenance, and writes them to a file if named."""
    result = {"rows": rows, **provenance(hardware())}
    cli.print_result(result)  # first, in case the file cannot be written
    if output:
        write_json(Path(output), result)


def training_of(result: Result) -> Result:
    """The fields of a row's result that identify the training from which the result comes."""
    return {name: result[name] for name in ("commit", "bleu", "command")}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Writes a JSON file atomically; makes its folder if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_output(str(path)) as stream:
        stream.write(json.dumps(content, indent=2) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON file; raises ValueError if it is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON; {error}") from None


def read_curve(run_dir: Path) -> list[dict[str, Any]]:
    """Reads the log of a run: losses and validations, one record for each line."""
    path = run_dir / "metrics.jsonl"
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except ValueError as error:
        raise ValueError(f"{path}: expected lines of JSON; {error}") from None

"""The common part of the commands that make a data directory."""

from collections.abc import Callable
from typing import Any

from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.data.manifest import Manifest
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.preparation import prepare_text


def make_directory(
    command: str,
    options: Any,
    make: Callable[[Any], tuple[Manifest, bool]],
    summary: Callable[[Manifest], dict[str, Any]] = prepare_text.summary,
) -> None:
    """Makes a data directory, and prints its figures.

    Args:
        command: name of the command.
        options: a record with an `output_dir`.
        make: makes the directory from `options`; returns the manifest, and whether the directory
            is new.
        summary: returns the figures of a manifest to print.
    """
    manifest, is_new = make(options)
    if not is_new:
        print_note(f"{options.output_dir}: already prepared with these options; nothing to do")
    made = {"command": command, "output_dir": options.output_dir}
    cli.print_result({**made, **summary(manifest), "is_new": is_new})

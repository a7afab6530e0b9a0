"""The commands that make a data directory; they differ in their options and in what they read."""

from collections.abc import Callable
from typing import Any

from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.data.manifest import Manifest
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.preparation import prepare_text


def command(
    name: str,
    kind: Any,
    make: Callable[[Any], tuple[Manifest, bool]],
    summary: Callable[[Manifest], dict[str, Any]] = prepare_text.summary,
) -> tuple[Callable[[cli.Flags], None], Callable[[cli.Arguments], None]]:
    """Returns the functions `define` and `main` of a command that makes a data directory.

    Args:
        name: name of the command.
        kind: class of its options, with an `output_dir`.
        make: makes the directory from the options; returns the manifest, and whether the directory
            is new.
        summary: returns the figures of a manifest to print.
    """

    def define(flags: cli.Flags) -> None:
        """The flags of the command."""
        flags.options(kind)

    def main(arguments: cli.Arguments) -> None:
        """Makes the data directory that the flags describe, and prints its figures."""
        options = cli.options_from(arguments, kind)
        manifest, is_new = make(options)
        if not is_new:
            print_note(f"{options.output_dir}: already prepared with these options; nothing to do")
        made = {"command": name, "output_dir": options.output_dir}
        cli.print_result({**made, **summary(manifest), "is_new": is_new})

    return define, main

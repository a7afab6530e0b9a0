"""What the commands that make a data directory have in common."""

from collections.abc import Callable
from typing import Any

from absl import flags

from experiments import cli
from seq2seq_memattn.data.manifest import Manifest

flags.disclaim_key_flags()  # --help lists a command's flags as the command's, not as this module's


def run_command(
    name: str,
    kind: type[Any],
    prepare: Callable[[Any], tuple[Manifest, bool]],
    figures: Callable[[Manifest], dict[str, Any]],
) -> None:
    """Makes the data directory that the flags ask for, and prints its figures.

    Args:
        name: of the command, behind `python -m`.
        kind: the option record; it has an `output_dir`.
        prepare: makes the directory from such a record; returns its manifest, and whether it was
            made now.
        figures: what is printed of a manifest.
    """

    def main(arguments: list[str]) -> None:
        del arguments
        options = cli.options_from_flags(kind)
        manifest, is_new = prepare(options)
        if not is_new:
            there = options.output_dir
            cli.print_note(f"{there}: already prepared with these options; nothing to do")
        made = {"command": name, "output_dir": options.output_dir}
        cli.print_result({**made, **figures(manifest), "is_new": is_new})

    cli.define_flags(kind)
    cli.run(main)

"""Serves exported models.

The protocol is TensorFlow Serving's REST protocol. The web page is at `/`, metrics are at
`/metrics`. `--export_dir` may be given several times, each as NAME=DIR or as DIR. With DIR, the
model has the name of the folder. The server finds new versions in an export folder by itself. On
SIGTERM or SIGINT, it answers the requests it has accepted and ends.
"""

from pathlib import Path

from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.serving.options import ServerOptions


def export_folders(values: list[str]) -> dict[str, Path]:
    """The export folders by model name; each value is DIR or NAME=DIR.

    Raises:
        ValueError: if two models have the same name.
    """
    folders: dict[str, Path] = {}
    for value in values:
        name, equals, folder = value.partition("=")
        path = Path(folder if equals else value)
        name = name if equals else path.resolve().name
        if name in folders:
            raise ValueError(
                f"--export_dir: two models are named {name!r}; NAME=DIR gives another name"
            )
        folders[name] = path
    return folders


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.group("Models")
    flags.repeated(
        "export_dir", "folder that `memattn export` wrote, or NAME=DIR; may be given several times"
    )
    flags.options(ServerOptions)


def main(arguments: cli.Arguments) -> None:
    """Serves the models that the flags name."""
    options = cli.options_from(arguments, ServerOptions)
    folders = export_folders(arguments.export_dir)
    from seq2seq_memattn.serving.server import serve

    cli.print_result(serve(folders, options, lambda url: print_note(f"serving at {url}")))

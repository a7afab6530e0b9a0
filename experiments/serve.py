"""Serves exported models: python -m experiments.serve --export_dir=D, then http://127.0.0.1:8501/.

The protocol is TensorFlow Serving's REST protocol; the web page is at `/`, metrics are at
`/metrics`. `--export_dir` may be given several times, each as NAME=DIR, or as DIR, whose name is
then the model's. A new version in an export folder is served as soon as it is there. SIGTERM and
SIGINT end the server when it has answered what it has.
"""

from pathlib import Path
from typing import Any

from absl import flags

from experiments import cli
from seq2seq_memattn.serving.options import ServerOptions


def export_folders(values: list[str]) -> dict[str, Path]:
    """The export folder of each model by its name, from DIR or NAME=DIR each.

    Raises:
        ValueError: if two models have one name.
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


def main(arguments: list[str]) -> None:
    """Serves from flags."""
    del arguments
    given: Any = flags.FLAGS
    options = cli.options_from_flags(ServerOptions)
    folders = export_folders(given.export_dir)
    from seq2seq_memattn.serving.server import serve

    cli.print_result(serve(folders, options, lambda url: cli.print_note(f"serving at {url}")))


if __name__ == "__main__":
    flags.DEFINE_multi_string(
        "export_dir", None, "folder that experiments.export wrote, or NAME=DIR", required=True
    )
    cli.define_flags(ServerOptions)
    cli.run(main)

"""Pages of the API, made of the docstrings by pdoc: python -m experiments.api_docs.

Of the public names, and of the modules with which notebooks and programs train, decode and draw.
The pages need no network and go to `--output_dir`, best a new one: pages of modules that are gone
stay.
"""

import sys
from pathlib import Path

import pdoc
import pdoc.docstrings
import pdoc.render

import seq2seq_memattn
from seq2seq_memattn.commands.shared import cli

MODULES = (
    "seq2seq_memattn",
    "seq2seq_memattn.config",
    "seq2seq_memattn.metrics",
    "seq2seq_memattn.search.batch_decoder",
    "seq2seq_memattn.training.loop",
    "seq2seq_memattn.runs.directory",
    "seq2seq_memattn.runs.translator",
)
# Sections of our docstrings that are lists, beside those that pdoc knows.
LISTS = ("Fields", "Call arguments")


def make(output_dir: Path) -> None:
    """Writes the pages.

    Args:
        output_dir: Path. Made if it is not there.
    """
    pdoc.docstrings.GOOGLE_LIST_SECTIONS[:] = {*pdoc.docstrings.GOOGLE_LIST_SECTIONS, *LISTS}
    pdoc.render.configure(
        docformat="google",
        footer_text=f"seq2seq_memattn {seq2seq_memattn.__version__}",
        show_source=False,
    )
    pdoc.pdoc(*MODULES, output_directory=output_dir)


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.string("output_dir", "runs/api", "where the pages go")


def main(arguments: cli.Arguments) -> None:
    """Makes the pages from flags."""
    output_dir = Path(arguments.output_dir)
    make(output_dir)
    cli.print_result({"page": str(output_dir / "index.html")})


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])

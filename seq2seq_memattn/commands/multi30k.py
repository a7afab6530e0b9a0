"""Prepares Multi30k, 29,000 image captions: English to or from German, French or Czech.

    memattn multi30k --pair=en-de --output_dir=D [--source_dir=D] [--tokenised]

Downloads the files, or reads them from `--source_dir`. The test sets are flickr 2016 and, except
for Czech, mscoco 2017. For research and other non-commercial use; see
https://github.com/multi30k/dataset.
"""

from seq2seq_memattn.commands.shared import cli, preparing
from seq2seq_memattn.preparation.known_corpora import Multi30kOptions, prepare_multi30k


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.options(Multi30kOptions)


def main(arguments: cli.Arguments) -> None:
    """Prepares the data directory that the flags describe."""
    options = cli.options_from(arguments, Multi30kOptions)
    preparing.make_directory("multi30k", options, prepare_multi30k)

"""Prepares small_parallel_enja: 50,000 short pairs, English to or from Japanese.

    memattn small_parallel_enja --pair=en-ja --output_dir=D --kind=words --vocab_size=5000

Downloads the files, or reads them from `--source_dir`. Both sides are already tokenised. See
https://github.com/odashi/small_parallel_enja, which states no licence.
"""

import functools

from seq2seq_memattn.commands.shared import cli, preparing
from seq2seq_memattn.preparation.known_corpora import CorpusOptions, prepare

NAME = "small_parallel_enja"


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.options(CorpusOptions)


def main(arguments: cli.Arguments) -> None:
    """Prepares the data directory that the flags describe."""
    options = cli.options_from(arguments, CorpusOptions)
    preparing.make_directory(NAME, options, functools.partial(prepare, NAME))

"""Prepares small_parallel_enja, 50,000 short sentences, English to or from Japanese, in words.

    memattn small_parallel_enja --pair=en-ja --output_dir=D --kind=words

Downloads the files, or takes them from a folder that has them (`--source_dir`). Both sides are
tokenised already. See https://github.com/odashi/small_parallel_enja, which states no licence.
"""

import functools

from seq2seq_memattn.commands.shared import cli, preparing
from seq2seq_memattn.preparation.known_corpora import CorpusOptions, prepare

NAME = "small_parallel_enja"


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.options(CorpusOptions)


def main(arguments: cli.Arguments) -> None:
    """Prepares from flags."""
    options = cli.options_from(arguments, CorpusOptions)
    preparing.make_directory(NAME, options, functools.partial(prepare, NAME))

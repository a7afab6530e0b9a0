"""Prepares a small corpus of long sentences, the test sets of the WMT news tasks: en-de or en-cs.

    memattn wmt_news --pair=en-de --source_dir=D --output_dir=D

`--source_dir` must hold `newstest2008.en.gz` to `newstest2017.de.gz`, directly or in a folder named
`en-de`. The sets of 2008 to 2014 are for training, 2015 for validation and 2017 for testing. For
research use; see https://www.statmt.org/wmt17/translation-task.html.
"""

import functools

from seq2seq_memattn.commands.shared import cli, preparing
from seq2seq_memattn.preparation.known_corpora import CorpusOptions, prepare

NAME = "wmt_news"


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.options(CorpusOptions)


def main(arguments: cli.Arguments) -> None:
    """Prepares the data directory that the flags describe."""
    options = cli.options_from(arguments, CorpusOptions)
    preparing.make_directory(NAME, options, functools.partial(prepare, NAME))

"""Prepares the test sets of the WMT news tasks as a small corpus of long sentences: en-de, en-cs.

    memattn wmt_news --pair=en-de --source_dir=D --output_dir=D

The folder has `newstest2008.en.gz` to `newstest2017.de.gz`, or them in a folder `en-de`. 2008 to
2014 train, 2015 validates, 2017 tests. For research use; see
https://www.statmt.org/wmt17/translation-task.html.
"""

import functools

from seq2seq_memattn.commands.shared import cli, preparing
from seq2seq_memattn.preparation.known_corpora import CorpusOptions, prepare

NAME = "wmt_news"


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.options(CorpusOptions)


def main(arguments: cli.Arguments) -> None:
    """Prepares from flags."""
    options = cli.options_from(arguments, CorpusOptions)
    preparing.make_directory(NAME, options, functools.partial(prepare, NAME))

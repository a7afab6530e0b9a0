r"""Prepares WMT'17 news translation, en-cs, en-de, en-fi or en-tr, as the memory paper used it.

    memattn wmt17 --pair=en-de --output_dir=D [--source_dir=D]

Downloads the preprocessed release (several GB for en-de, en-cs and en-fi; an interrupted download
goes on where it stopped), or takes the files from a folder that has them: `corpus.tc.{en,de}.gz`,
`dev.tgz` and `true.tgz`, or what these unpack to. Then makes a data directory as
`memattn parallel_text` does: 16,000 pieces for both languages, newstest2015 for validation
(newsdev2016 for Turkish) and newstest2016 for the test. Which files those are stands in
`preparation/corpora/wmt17.toml`. For research; see https://www.statmt.org/wmt17/translation-task.html.
"""

import functools

from seq2seq_memattn.commands.shared import cli, preparing
from seq2seq_memattn.preparation.known_corpora import CorpusOptions, prepare

NAME = "wmt17"


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.options(CorpusOptions)


def main(arguments: cli.Arguments) -> None:
    """Prepares from flags."""
    options = cli.options_from(arguments, CorpusOptions)
    preparing.make_directory(NAME, options, functools.partial(prepare, NAME))

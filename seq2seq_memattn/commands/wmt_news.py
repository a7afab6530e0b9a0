"""Prepares a small corpus of long sentences, the test sets of the WMT news tasks: en-de or en-cs.

    memattn wmt_news --pair=en-de --source_dir=D --output_dir=D

`--source_dir` must hold `newstest2008.en.gz` to `newstest2017.de.gz`, directly or in a folder named
`en-de`. The sets of 2008 to 2014 are for training, 2015 for validation and 2017 for testing. For
research use; see https://www.statmt.org/wmt17/translation-task.html.
"""

from functools import partial

from seq2seq_memattn.commands.shared import preparing
from seq2seq_memattn.preparation.known_corpora import CorpusOptions, prepare

define, main = preparing.command("wmt_news", CorpusOptions, partial(prepare, "wmt_news"))

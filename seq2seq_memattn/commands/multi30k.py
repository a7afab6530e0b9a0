"""Prepares Multi30k, 29,000 image captions: English to or from German, French or Czech.

    memattn multi30k --pair=en-de --output_dir=D

Downloads the files, or reads them from `--source_dir`. The test sets are flickr 2016 and, except
for Czech, mscoco 2017. For research and other non-commercial use; see
https://github.com/multi30k/dataset.
"""

from seq2seq_memattn.commands.shared import preparing
from seq2seq_memattn.preparation.known_corpora import Multi30kOptions, prepare_multi30k

define, main = preparing.command("multi30k", Multi30kOptions, prepare_multi30k)

"""Prepares small_parallel_enja: 50,000 short pairs, English to or from Japanese.

    memattn small_parallel_enja --pair=en-ja --output_dir=D --kind=words --vocab_size=5000

Downloads the files, or reads them from `--source_dir`. Both sides are already tokenised. See
https://github.com/odashi/small_parallel_enja, which states no licence.
"""

from functools import partial

from seq2seq_memattn.commands.shared import preparing
from seq2seq_memattn.preparation.known_corpora import CorpusOptions, prepare

define, main = preparing.command(
    "small_parallel_enja", CorpusOptions, partial(prepare, "small_parallel_enja")
)

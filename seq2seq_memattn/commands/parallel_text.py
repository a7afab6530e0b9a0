r"""Prepares parallel text: two files in which line N of one translates line N of the other.

    memattn parallel_text \
        --train_source=train.en.gz --train_target=train.de.gz \
        --valid_source=val.en.gz --valid_target=val.de.gz --vocab_size=16000 --output_dir=D

The data directory holds the vocabulary, shards of token ids for all splits, and the text of the
validation and test sets for scoring. Only training pairs are filtered.

The text is read twice. The first pass checks it, counts pairs, finds duplicates and samples lines
for the vocabulary. The second pass encodes it, with one process per CPU core. Memory does not grow
with the corpus; temporary files take 9 bytes per pair. Repeat an interrupted command to resume it.
If the directory is ready, the command does nothing.
"""

from seq2seq_memattn.commands.shared import preparing
from seq2seq_memattn.preparation.parallel_text import ParallelTextOptions, prepare

define, main = preparing.command("parallel_text", ParallelTextOptions, prepare)

r"""Prepares parallel text: two files whose lines are translations of each other, a pair a line.

    memattn parallel_text \
        --train_source=train.en.gz --train_target=train.de.gz \
        --valid_source=val.en.gz --valid_target=val.de.gz --vocab_size=16000 --output_dir=D

The directory gets the vocabulary, the token ids of all splits in shards, and the text of validation
and test sets, which scores need. Only training pairs are filtered.

The text is read twice: to check it, count it, find duplicates and draw the sample that the
vocabulary is made from; and to encode it, in one process per CPU core. Memory does not grow with
the corpus; on disk, 9 bytes a pair are needed for the time being. A command that was interrupted
goes on when it is repeated; one whose directory is ready does nothing.
"""

from seq2seq_memattn.commands.shared import cli, preparing
from seq2seq_memattn.preparation.parallel_text import ParallelTextOptions, prepare


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.options(ParallelTextOptions)


def main(arguments: cli.Arguments) -> None:
    """Prepares from flags."""
    options = cli.options_from(arguments, ParallelTextOptions)
    preparing.make_directory("parallel_text", options, prepare)

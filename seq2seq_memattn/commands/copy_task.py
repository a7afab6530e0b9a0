"""Prepares the copy task: the target is the source, a sequence of random symbols.

    memattn copy_task --max_length=20 --output_dir=runs/data/copy_20

Lengths are uniform in 0..max_length, as in section 4.1 of Britz, Guan and Luong (2017). Each line
of the text files is one example, and an empty line is an example of length 0. A second run with
the same options finds the directory ready and does nothing.
"""

from seq2seq_memattn.commands.shared import preparing
from seq2seq_memattn.preparation import copy_task
from seq2seq_memattn.preparation.copy_task import CopyTaskOptions

define, main = preparing.command("copy_task", CopyTaskOptions, copy_task.prepare, copy_task.summary)

"""`memattn small_parallel_enja` in a checkout: python -m data_prep.small_parallel_enja."""

from seq2seq_memattn.commands import small_parallel_enja
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(small_parallel_enja)

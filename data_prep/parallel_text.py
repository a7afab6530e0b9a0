"""`memattn parallel_text` in a checkout: python -m data_prep.parallel_text."""

from seq2seq_memattn.commands import parallel_text
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(parallel_text)

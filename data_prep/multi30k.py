"""`memattn multi30k` in a checkout: python -m data_prep.multi30k."""

from seq2seq_memattn.commands import multi30k
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(multi30k)

"""`memattn wmt17` in a checkout: python -m data_prep.wmt17."""

from seq2seq_memattn.commands import wmt17
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(wmt17)

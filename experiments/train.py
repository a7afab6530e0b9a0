"""`memattn train` in a checkout: python -m experiments.train."""

from seq2seq_memattn.commands import train
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(train)

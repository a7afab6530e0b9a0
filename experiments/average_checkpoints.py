"""`memattn average_checkpoints` in a checkout: python -m experiments.average_checkpoints."""

from seq2seq_memattn.commands import average_checkpoints
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(average_checkpoints)

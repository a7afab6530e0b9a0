"""`memattn export` in a checkout: python -m experiments.export."""

from seq2seq_memattn.commands import export
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(export)

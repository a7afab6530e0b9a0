"""`memattn serve` in a checkout: python -m experiments.serve."""

from seq2seq_memattn.commands import serve
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(serve)

"""`memattn score` in a checkout: python -m experiments.score."""

from seq2seq_memattn.commands import score
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(score)

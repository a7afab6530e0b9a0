"""`memattn evaluate` in a checkout: python -m experiments.evaluate."""

from seq2seq_memattn.commands import evaluate
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(evaluate)

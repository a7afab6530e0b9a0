"""The benchmark under its old name: python -m experiments.compare_checkouts --base=DIR."""

from experiments.benchmarks import compare_checkouts
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(compare_checkouts)

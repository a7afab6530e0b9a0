"""`memattn translate` in a checkout: python -m experiments.translate."""

from seq2seq_memattn.commands import translate
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(translate)

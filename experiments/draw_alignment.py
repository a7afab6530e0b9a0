"""`memattn draw_alignment` in a checkout: python -m experiments.draw_alignment."""

from seq2seq_memattn.commands import draw_alignment
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(draw_alignment)

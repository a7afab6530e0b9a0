"""`memattn launch_local` in a checkout: python -m experiments.launch_local."""

from seq2seq_memattn.commands import launch_local
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(launch_local)

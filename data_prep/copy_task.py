"""`memattn copy_task` in a checkout: python -m data_prep.copy_task."""

from seq2seq_memattn.commands import copy_task
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(copy_task)

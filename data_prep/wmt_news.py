"""`memattn wmt_news` in a checkout: python -m data_prep.wmt_news."""

from seq2seq_memattn.commands import wmt_news
from seq2seq_memattn.commands.shared.cli import launch

if __name__ == "__main__":
    launch(wmt_news)

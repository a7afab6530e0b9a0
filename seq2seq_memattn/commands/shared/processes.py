"""Output of commands that start several processes at a time."""

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import IO

from seq2seq_memattn.notes import print_note

WITHOUT_BARS = {"TQDM_DISABLE": "1"}  # for the environment of processes that run at the same time


@contextlib.contextmanager
def lines_under(name: str) -> Iterator[IO[bytes]]:
    """Opens a stream for a process's output; prints each line after `name` to standard error."""
    reading, writing = os.pipe()
    follower = threading.Thread(target=_show, args=(reading, name))
    follower.start()
    try:
        with open(writing, "wb") as stream:
            yield stream
    finally:
        follower.join()


def _show(reading: int, name: str) -> None:
    with open(reading, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if line.strip():
                print_note(f"{name}: {line.rstrip()}")

"""Reads a text file in chunks of lines; a chunk of a stream has the lines that have arrived."""

import os
import queue
import stat
import sys
import threading
from collections.abc import Iterator
from itertools import islice

from seq2seq_memattn.text.files import STANDARD_STREAM, iterate_lines


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether the lines of a file arrive over time, as from a pipe or a terminal."""
    try:
        if os.fspath(path) == STANDARD_STREAM:
            mode = os.fstat(sys.stdin.fileno()).st_mode
        else:
            mode = os.stat(path).st_mode
    except (AttributeError, OSError):  # no such file, or no descriptor behind standard input
        return os.fspath(path) == STANDARD_STREAM
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def line_chunks(path: str | os.PathLike[str], size: int) -> Iterator[list[str]]:
    """Yields the lines of a text file in chunks, in order.

    Args:
        path: see `iterate_lines`.
        size: int > 0. The maximum number of lines in a chunk. A chunk of a stream has the lines
            that arrived while the previous chunk was processed, but at least one line. Chunks of
            other files are full, except the last.

    Raises:
        ValueError: see `iterate_lines`. From a stream, all lines before the error come first.
    """
    lines = iterate_lines(path)
    if is_stream(path):
        yield from _as_they_come(lines, size)
        return
    while chunk := list(islice(lines, size)):
        yield chunk


def _as_they_come(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    """Yields chunks of the lines that a background thread reads."""
    # The lines, then how reading ended: an exception, or None at the end of the file.
    coming: queue.Queue[str | Exception | None] = queue.Queue(size)

    def read() -> None:
        try:
            for line in lines:
                coming.put(line)
            coming.put(None)
        except Exception as error:  # to be raised in the thread that uses the lines
            coming.put(error)

    threading.Thread(target=read, daemon=True).start()
    end: Exception | None = None
    is_open = True
    while is_open:
        chunk: list[str] = []
        while len(chunk) < size and not (chunk and coming.empty()):
            found = coming.get()
            if not isinstance(found, str):
                is_open, end = False, found
                break
            chunk.append(found)
        if chunk:
            yield chunk
    if end is not None:
        raise end

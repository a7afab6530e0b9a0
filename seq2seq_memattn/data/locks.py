"""Directories that one process at a time works on."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(directory: Path, doing: str) -> Iterator[None]:
    """Keeps other processes out of a directory; ends with the process, however that ends.

    Args:
        directory: Path. Must exist.
        doing: what the error says that the other process does.

    Raises:
        ValueError: if another process, or other code of this one, has locked it.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{directory}: another process is {doing}") from None
        yield
    finally:
        os.close(descriptor)

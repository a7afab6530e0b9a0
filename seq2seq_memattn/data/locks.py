"""Directories that one process of a machine at a time works on."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(directory: Path, doing: str) -> Iterator[None]:
    """Keeps other processes of this machine out; ends with the process, however that ends.

    On a file system that has no locks it does nothing.

    Args:
        directory: Path. Must exist.
        doing: what the error says that the other process does.

    Raises:
        ValueError: if another process, or other code of this one, has locked it.
    """
    import fcntl  # not on every platform on which runs are read

    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{directory}: another process is {doing}") from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EBADF):
                raise
        yield
    finally:
        os.close(descriptor)

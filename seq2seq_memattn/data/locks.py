"""A lock that allows one process per machine to work on a directory."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(directory: Path, doing: str) -> Iterator[None]:
    """Locks a directory against other processes of this machine while the block runs.

    The lock also ends when the process ends, even if it is killed. On a file system without locks,
    nothing is locked.

    Args:
        directory: Path. Must exist.
        doing: what the holder of the lock does, for the error message, such as "training this run".

    Raises:
        ValueError: if another process, or other code in this one, holds the lock.
    """
    import fcntl  # does not exist on every platform that can read runs

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

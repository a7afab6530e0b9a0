"""A lock that allows one process per machine to work on a directory."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from seq2seq_memattn.notes import print_note


@contextlib.contextmanager
def locked(directory: Path, doing: str, waits: bool = False) -> Iterator[bool]:
    """Locks a directory against other processes of this machine while the block runs.

    The lock also ends when the process ends, even if it is killed. On a file system without locks,
    nothing is locked.

    Args:
        directory: Path. Must exist.
        doing: what the holder of the lock does, for the message, such as "training this run".
        waits: whether to wait while another process holds the lock.

    Yields:
        bool. Whether there is a lock: False on a file system without locks.

    Raises:
        ValueError: if another process, or other code in this one, holds the lock; not if `waits`.
    """
    import fcntl  # does not exist on every platform that can read runs

    descriptor, is_locked = os.open(directory, os.O_RDONLY), True
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not waits:
                raise ValueError(f"{directory}: another process is {doing}") from None
            print_note(f"{directory}: waiting for another process that is {doing}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EBADF):
                raise
            is_locked = False
        yield is_locked
    finally:
        os.close(descriptor)

"""Worker processes that end with the command, however that ends."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import parent_process
from typing import Any

# Workers start from a fresh interpreter: they share neither the parent's memory nor its threads.
CONTEXT = multiprocessing.get_context("spawn")


@contextlib.contextmanager
def worker_pool(
    num_processes: int, start: Callable[..., None] | None = None, *arguments: Any
) -> Iterator[ProcessPoolExecutor]:
    """Yields a pool of processes, which are ended at once if the block raises.

    Args:
        num_processes: int > 0.
        start, arguments: called in each process before its first task.

    Raises:
        OSError: if a process died, killed by the system for instance.
    """
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        num_processes, mp_context=CONTEXT, initializer=_begin, initargs=(start, arguments)
    )
    try:
        yield pool
    except BaseException as error:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        if not isinstance(error, BrokenProcessPool):
            raise
        raise OSError(
            "a worker process died, for want of memory perhaps; what is done is kept: "
            "the same command goes on from there, with fewer --processes if need be"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(start: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    """Ctrl-C reaches all processes of a terminal, and the parent is the one that minds it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    if start:
        start(*arguments)


def _exit_with_parent() -> None:
    """Ends this process when its parent was killed; it would wait for tasks for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

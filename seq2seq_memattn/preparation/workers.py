"""Worker processes that always end with the command, even if it is killed."""

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
    num_processes: int, advice: str, start: Callable[..., None] | None = None, *arguments: Any
) -> Iterator[ProcessPoolExecutor]:
    """Yields a pool of worker processes; they are terminated at once if the block raises.

    Args:
        num_processes: int > 0.
        advice: what the user can do if a process lacks memory; ends the error's message.
        start, arguments: a function to call in each process before its first task, and its
            arguments.

    Raises:
        OSError: if a process died, for instance because the system killed it.
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
            "a worker process died, perhaps for lack of memory; the finished work is kept: "
            f"run the same command again to resume, {advice} if necessary"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(start: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    """Starts a worker that ignores Ctrl-C: all processes receive it, and the parent handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    if start:
        start(*arguments)


def _exit_with_parent() -> None:
    """Ends this process when its parent ends; otherwise it would wait for tasks for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

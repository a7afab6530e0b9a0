"""How much memory processes take, on Linux."""

import concurrent.futures
import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np

PROC = Path("/proc")


def process_tree_mib(pid: int) -> float:
    """MiB that a process and its descendants hold now; what they share counts once.

    That is the sum of their proportional set sizes. Processes that end meanwhile count nothing.

    Raises:
        ValueError: where the system does not say it.
    """
    if not (PROC / "self" / "smaps_rollup").exists():
        raise ValueError("expected a system with /proc/PID/smaps_rollup, as Linux has it")
    return sum(_own_mib(one) for one in _tree(pid))


def _tree(pid: int) -> list[int]:
    """The process and all whose parents lead to it."""
    children: dict[int, list[int]] = {}
    for folder in PROC.glob("[0-9]*"):
        try:
            # Behind the name in parentheses, which may hold anything: state, then parent.
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        children.setdefault(parent, []).append(int(folder.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def _own_mib(pid: int) -> float:
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def work_peak_mib(setting: Any) -> float:
    """MiB that the work of a `Setting` takes at its peak, beside what Python and libraries take.

    In a process of its own, after a first run that compiles.
    """
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        return pool.submit(_work_peak_mib, setting).result()


def _work_peak_mib(setting: Any) -> float:
    from keras import ops  # not where processes of other programs are measured

    from experiments.benchmarks.timed_work import make_work

    np.asarray(ops.ones((2, 2)) @ ops.ones((2, 2)))  # starts the backend
    before = _status_mib("VmRSS")
    work = make_work(setting)
    work.run()
    (PROC / "self" / "clear_refs").write_text("5")  # forgets the peak so far
    work.run()
    return _status_mib("VmHWM") - before


def _status_mib(name: str) -> float:
    """A figure of this process in /proc/self/status."""
    lines = (PROC / "self" / "status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024

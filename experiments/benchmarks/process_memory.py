"""Measures the memory of processes on Linux."""

import concurrent.futures
import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np

PROC = Path("/proc")


def process_tree_mib(pid: int) -> float:
    """Memory of a process and its descendants in MiB; shared memory counts once.

    The figure is the sum of proportional set sizes. Processes that end meanwhile count as 0.

    Raises:
        ValueError: if the system does not report proportional set sizes.
    """
    if not (PROC / "self" / "smaps_rollup").exists():
        raise ValueError("expected a system with /proc/PID/smaps_rollup, such as Linux")
    return sum(_own_mib(one) for one in _tree(pid))


def _tree(pid: int) -> list[int]:
    """The process and all its descendants."""
    children: dict[int, list[int]] = {}
    for folder in PROC.glob("[0-9]*"):
        try:
            # After the name in parentheses, which may contain anything, come state and parent.
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
    """Peak memory of the work of a `Setting` in MiB, without that of Python and libraries.

    The work runs in a separate process. Of a first run, which compiles, only the memory that stays
    allocated counts.
    """
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        return pool.submit(_work_peak_mib, setting).result()


def _work_peak_mib(setting: Any) -> float:
    from keras import ops  # not at the top: measuring other processes needs no Keras

    from experiments.benchmarks.timed_work import make_work

    np.asarray(ops.ones((2, 2)) @ ops.ones((2, 2)))  # starts the backend
    before = _status_mib("VmRSS")
    work = make_work(setting)
    work.run()
    (PROC / "self" / "clear_refs").write_text("5")  # resets the peak
    work.run()
    return _status_mib("VmHWM") - before


def _status_mib(name: str) -> float:
    """A figure of this process in /proc/self/status."""
    lines = (PROC / "self" / "status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024

"""How much memory a process and those that it started take, on Linux."""

from pathlib import Path

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

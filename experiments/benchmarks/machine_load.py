"""How busy other programs keep the machine during a measurement (Linux).

This file needs only Python, because the scripts of other systems import it in their own
environments.
"""

import resource
import time
from pathlib import Path
from typing import Self

QUIET = 0.1  # cores; if other programs use more, the measurement counts as disturbed


class Stopwatch:
    """Times a `with` block, and measures the cores that other programs used during the block.

    Attributes:
        seconds: float. Time that the block took.
        elsewhere: float. Mean number of cores that other programs used.
    """

    seconds: float
    elsewhere: float

    def __enter__(self) -> Self:
        self._busy, self._own = _busy_seconds(), _own_seconds()
        self._started = time.monotonic()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = time.monotonic() - self._started
        others = _busy_seconds() - self._busy - (_own_seconds() - self._own)
        self.elsewhere = max(0.0, others / self.seconds)


def _busy_seconds() -> float:
    """Seconds that all cores have spent on programs since the machine started."""
    user, nice, system, *_ = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (user + nice + system) / 100.0  # the kernel counts in hundredths


def _own_seconds() -> float:
    """CPU seconds of this process and of its child processes that have ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)

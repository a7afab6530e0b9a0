"""Measurements of a training: of one update, and of all updates since the last log line."""

import math
import sys
import time
from typing import NamedTuple


class UpdateResult(NamedTuple):
    """The figures of one update.

    Fields:
        loss: float. Loss in nats per target token, with all its terms; see `TrainingLoss`.
        num_tokens: float. Target tokens of the batch, end tokens included.
        gradient_norm: float. Global norm of the gradient before clipping.
        is_applied: bool. False if loss or gradient was NaN or infinite.
        terms: the terms of the loss, by name. Their sum is the loss.
    """

    loss: float
    num_tokens: float
    gradient_norm: float
    is_applied: bool
    terms: dict[str, float] = {}


def memory_mib() -> float:
    """The peak memory of this process in MiB; NaN if the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows has no such module
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


class Clock:
    """Counts the seconds of a run over all its starts."""

    def __init__(self, before: float) -> None:
        self._before, self._started = before, time.monotonic()

    def seconds(self) -> float:
        return self._before + time.monotonic() - self._started


class Sums(NamedTuple):
    """Sums over the applied updates since the last line of the log; part of a checkpoint."""

    loss: float = 0.0  # nats
    tokens: float = 0.0
    norm: float = 0.0
    updates: int = 0
    last_loss: float = float("nan")  # nats per target token
    terms: dict[str, float] = {}  # nats


class Window:
    """Loss and speed since the last line of the log; validation time does not affect the speed."""

    def __init__(self, sums: Sums | None = None) -> None:
        self.sums = sums or Sums()
        self.start_clock()

    def start_clock(self) -> None:
        """Restarts the measurement of speed, for instance after a validation."""
        self._started = time.monotonic()
        self._timed_tokens = 0.0
        self._waited = 0.0

    def add_wait(self, seconds: float) -> None:
        """Counts time spent waiting for the next batch."""
        self._waited += seconds

    def add(self, result: UpdateResult) -> None:
        if not result.is_applied:
            return
        self._timed_tokens += result.num_tokens
        loss = self.sums.loss + result.loss * result.num_tokens
        tokens = self.sums.tokens + result.num_tokens
        norm = self.sums.norm + result.gradient_norm
        terms = {
            name: self.sums.terms.get(name, 0.0) + term * result.num_tokens
            for name, term in result.terms.items()
        }
        self.sums = Sums(loss, tokens, norm, self.sums.updates + 1, loss / tokens, terms)

    @property
    def loss(self) -> float:
        """Mean loss since the last line, in nats per target token; NaN before the first update.

        Until the first applied update after a line, it is the mean loss of that line.
        """
        return self.sums.last_loss

    def glance(self, num_workers: int = 1) -> dict[str, float]:
        """The figures since the last line of the log.

        Args:
            num_workers: int > 0. Processes that share the updates.
        """
        seconds = max(time.monotonic() - self._started, 1e-9)
        return {
            "loss": self.loss,
            **self._terms(),
            "tokens_per_second": self._timed_tokens / seconds,
            "tokens_per_second_per_worker": self._timed_tokens / seconds / num_workers,
            # The share of the time in which updates waited for input.
            "waiting": self._waited / seconds,
            "gradient_norm": self.sums.norm / self.sums.updates if self.sums.updates else math.nan,
        }

    def _terms(self) -> dict[str, float]:
        """The mean of each term, as "loss_NAME"; {} if the loss has only one term."""
        terms = self.sums.terms if len(self.sums.terms) > 1 else {}
        return {f"loss_{name}": term / self.sums.tokens for name, term in terms.items()}

    def take(self, num_workers: int = 1) -> dict[str, float]:
        """Returns the figures for a line of the log, and starts counting for the next line."""
        figures = self.glance(num_workers)
        self.sums = Sums(last_loss=self.loss)
        self.start_clock()
        return figures

"""The processes that train one model together, as the training loop sees them.

Each runs the same loop over the same batches, of which it computes its rows, and comes to the same
decisions; the first, the chief, alone writes files.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

MESSAGE = 1 << 20  # numbers that are sent at once


class LostWorker(Exception):
    """Another process of the cluster ended or does not answer."""


class Workers:
    """All processes of a training, and which of them this one is.

    Args:
        addresses: host:port of each.
        index: int. This process's.
        total: sums arrays of int32 or float64, [n], over all processes; each must call it as often.

    Attributes:
        index: int.
        is_chief: bool. Whether this process writes the run's files.
    """

    def __init__(
        self,
        addresses: Sequence[str] = ("",),
        index: int = 0,
        total: Callable[[Any], Any] = np.asarray,
    ) -> None:
        self.index = index
        self.is_chief = index == 0
        self._addresses = addresses
        self._total = total

    def __len__(self) -> int:
        return len(self._addresses)

    def total(self, values: Any) -> Any:
        """The sum of all processes' arrays: int32 or float64 [n]."""
        if len(self) == 1 or not len(values):
            return values
        parts = [values[i : i + MESSAGE] for i in range(0, len(values), MESSAGE)]
        return np.concatenate([np.asarray(self._total(part)) for part in parts])

    def largest(self, value: int) -> int:
        """The largest of what each process has, which is not negative."""
        if len(self) == 1:
            return value
        values = np.zeros(len(self), np.int32)
        values[self.index] = value
        return int(self.total(values).max())

    def share_of(self, count: int) -> range:
        """Which of `count` pieces of work are this process's."""
        return range(self.index, count, len(self))

    def from_chief(self, value: Any) -> Any:
        """The chief's value, which JSON can say; the others' are not looked at."""
        if len(self) == 1:
            return value
        return json.loads(self._bytes_from_chief(json.dumps(value).encode()))

    def assign_from_chief(self, variables: Sequence[Any]) -> None:
        """Gives variables the values that they have in the chief."""
        if len(self) == 1:
            return
        for variable in variables:
            array = np.asarray(variable)
            sent = self._bytes_from_chief(array.tobytes())
            if not self.is_chief:
                variable.assign(np.frombuffer(sent, array.dtype).reshape(array.shape))

    def wait_for_all(self) -> None:
        """Returns when every process has come here."""
        self.largest(0)

    def _bytes_from_chief(self, content: bytes) -> bytes:
        (size,) = self.total(np.array([self.is_chief * len(content)], np.int32))
        numbers = np.zeros(-(-size // 4), np.int32)
        if self.is_chief:
            numbers = np.frombuffer(content + bytes(-size % 4), np.int32)
        return self.total(numbers).tobytes()[:size]

    @contextlib.contextmanager
    def named_losses(self) -> Iterator[None]:
        """Says in one line which process was lost, where TensorFlow found that out."""
        if len(self) == 1:
            yield
            return
        import tensorflow as tf

        errors = tf.errors
        kinds = (
            errors.UnavailableError,
            errors.DeadlineExceededError,
            errors.AbortedError,
            errors.CancelledError,
            errors.InternalError,
            errors.UnknownError,
            errors.FailedPreconditionError,
        )
        try:
            yield
        except kinds as error:
            raise LostWorker(self._loss(str(error))) from error

    def _loss(self, message: str) -> str:
        others = "the others end too; start all again: they go on from the last checkpoint"
        tasks = {int(number) for number in re.findall(r"/task:(\d+)", message)} - {self.index}
        if len(tasks) == 1:
            (task,) = tasks
            lost = f"worker {task} ({self._addresses[task]})"
        else:  # a peer may have heard of it before us
            lost = f"one of the workers {', '.join(self._addresses)}"
        causes = re.findall(r"grpc_message:\"([^\"]+)|(stopped sending heartbeats)", message)
        why = next((first or second for first, second in causes), message.strip().split("\n")[-1])
        return f"{lost} was lost ({why}); {others}"


ALONE = Workers()


class Devices(NamedTuple):
    """Where a training runs.

    Fields:
        strategy: tf.distribute.Strategy; None on JAX, on its first device.
        workers: the processes that run the loop.
    """

    strategy: Any
    workers: Workers

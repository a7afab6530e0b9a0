"""The processes that train one model together, as the training loop sees them.

All processes run the same loop over the same batches and make the same decisions. Each computes its
own rows of a batch. Only the first process, the chief, writes files.
"""

import concurrent.futures
import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from seq2seq_memattn.training.distributed.cluster import Places
from seq2seq_memattn.training.distributed.peers import (
    LOOK_EVERY,
    RESTART,
    LostWorker,
    Peers,
    answers,
)

MESSAGE = 1 << 20  # maximum number of array elements in one message

# Parts of TensorFlow's messages when an operation failed because of another process.
ABORTED = "Collective ops is aborted|stopped sending heartbeats|oordination service"


class Workers:
    """All processes of a training, and which of them this one is.

    Args:
        places: host:port of each process, by job and task.
        index: int. Index of this process in `places`.
        total: sums arrays [n] of int32 or float64 over all processes; all processes must call it
            equally often.
        servers: host:port of the processes that do not run the loop, by job and task.
        patience: a server is lost after this many seconds without an answer.

    Attributes:
        index: int. Index of this process.
        is_chief: bool. Whether this process writes the run's files.
    """

    def __init__(
        self,
        places: Places | None = None,
        index: int = 0,
        total: Callable[[Any], Any] = np.asarray,
        servers: Places | None = None,
        patience: float = float("inf"),
    ) -> None:
        self.index = index
        self.is_chief = index == 0
        self._places = places or {("worker", 0): ""}
        self._servers = servers or {}
        self._patience = patience
        self._total = total

    def __len__(self) -> int:
        return len(self._places)

    def total(self, values: Any) -> Any:
        """The sum of the arrays of all processes: int32 or float64 [n]."""
        if len(self) == 1 or not len(values):
            return values
        parts = [values[i : i + MESSAGE] for i in range(0, len(values), MESSAGE)]
        return np.concatenate([np.asarray(self._total(part)) for part in parts])

    def largest(self, value: int) -> int:
        """The largest of the values of all processes; they must not be negative."""
        if len(self) == 1:
            return value
        values = np.zeros(len(self), np.int32)
        values[self.index] = value
        return int(self.total(values).max())

    def share_of(self, count: int) -> range:
        """The indices of this process's share of `count` pieces of work."""
        return range(self.index, count, len(self))

    def from_chief(self, value: Any) -> Any:
        """Returns the chief's value, which must be JSON; values of other processes are ignored."""
        if len(self) == 1:
            return value
        return json.loads(self._bytes_from_chief(json.dumps(value).encode()))

    def assign_from_chief(self, variables: Sequence[Any]) -> None:
        """Assigns the chief's values to the variables."""
        if len(self) == 1:
            return
        for variable in variables:
            array = np.asarray(variable)
            sent = self._bytes_from_chief(array.tobytes())
            if not self.is_chief:
                variable.assign(np.frombuffer(sent, array.dtype).reshape(array.shape))

    def wait_for_all(self) -> None:
        """Waits until every process has called this method."""
        self.largest(0)

    def served(self, call: Callable[[], Any]) -> Any:
        """Returns the result of a function that waits for the servers' work.

        Raises:
            LostWorker: if all workers, or a server that holds weights, do not answer for too long.
                TensorFlow itself would wait for ever: it gives the work of a lost worker to the
                other workers, or to the same worker when it comes back.
        """
        if not self._servers:
            return call()
        result = _called(call)
        peers = Peers(self._servers, self._patience)
        while not concurrent.futures.wait([result], LOOK_EVERY).done:
            peers.check()
        return result.result()

    def _bytes_from_chief(self, content: bytes) -> bytes:
        (size,) = self.total(np.array([self.is_chief * len(content)], np.int32))
        numbers = np.zeros(-(-size // 4), np.int32)
        if self.is_chief:
            numbers = np.frombuffer(content + bytes(-size % 4), np.int32)
        return self.total(numbers).tobytes()[:size]

    @contextlib.contextmanager
    def named_losses(self) -> Iterator[None]:
        """Turns TensorFlow's errors about lost processes into `LostWorker`.

        The message of a `LostWorker` is one line.
        """
        if len(self) == 1 and not self._servers:
            yield
            return
        import tensorflow as tf

        errors = tf.errors
        of_peers = (errors.UnavailableError, errors.DeadlineExceededError, errors.AbortedError)
        try:
            yield
        except of_peers as error:
            raise LostWorker(self._loss(str(error))) from error
        except errors.OpError as error:
            # The libraries that connect GPUs have different messages for lost processes.
            if not re.search(ABORTED, str(error)) and self._all_answer():
                raise
            raise LostWorker(self._loss(str(error))) from error

    def _all_answer(self) -> bool:
        others = {**self._places, **self._servers}
        del others[list(self._places)[self.index]]
        return all(map(answers, others.values()))

    def _loss(self, message: str) -> str:
        every = {**self._places, **self._servers}
        named = {
            (job, int(task)) for job, task in re.findall(r"/job:(\w+)[^\s]*?/task:(\d+)", message)
        }
        named = (named & set(every)) - {list(self._places)[self.index]}
        if len(named) == 1:
            ((job, task),) = named
            lost = f"{job} {task} ({every[job, task]})"
        else:  # the message may come from a process that noticed the loss first
            lost = f"one of {', '.join(every.values())}"
        causes = re.findall(r"grpc_message:\"([^\"]+)|(stopped sending heartbeats)", message)
        why = next((first or second for first, second in causes), message.strip().split("\n")[-1])
        return f"{lost} was lost ({why}); {RESTART}"


def _called(call: Callable[[], Any]) -> concurrent.futures.Future[Any]:
    """Runs `call` in a thread that does not keep the process alive; returns its `Future`."""
    result: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def work() -> None:
        try:
            result.set_result(call())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return result


ALONE = Workers()


class Devices(NamedTuple):
    """The devices and processes of a training.

    Fields:
        strategy: tf.distribute.Strategy; None on JAX, which uses its first device.
        workers: the processes that run the loop.
        num_workers: int. Number of processes that compute updates.
    """

    strategy: Any
    workers: Workers
    num_workers: int = 1

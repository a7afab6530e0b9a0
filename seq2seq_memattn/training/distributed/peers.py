"""The other processes of a training: whether they answer, and when they count as lost."""

import socket
import time

from seq2seq_memattn.training.distributed.cluster import Places

ANSWER_SECONDS = 1.0  # a live process accepts a connection within this time
LOOK_EVERY = 1.0  # seconds between two checks

RESTART = "the other processes end too; restart all of them to resume from the last checkpoint"


class LostWorker(Exception):
    """Another process of the cluster has ended or does not answer."""


class Peers:
    """Watches the processes that an asynchronous training needs.

    The training needs at least one worker, and every process that is not a worker.

    Args:
        places: host:port of each process, by job and task.
        patience: a process is lost after this many seconds without an answer.
        have_come: whether all processes have already been reached. If not, a process can be lost
            only after its first answer.
    """

    def __init__(self, places: Places, patience: float, have_come: bool = True) -> None:
        self._places = places
        self._patience = patience
        self._heard = dict.fromkeys(places, time.monotonic()) if have_come else {}

    def check(self) -> None:
        """Checks which processes answer.

        Raises:
            LostWorker: if all workers are lost, or any process that is not a worker is lost.
        """
        answering = [at for at, address in self._places.items() if answers(address)]
        now = time.monotonic()  # after the whole round: silent processes may have taken long
        self._heard |= dict.fromkeys(answering, now)
        silent = {at for at, when in self._heard.items() if now - when > self._patience}
        workers = {at for at in self._places if at[0] == "worker"}
        lost = silent if workers <= silent else silent - workers
        if lost:
            named = ", ".join(
                f"{job} {task} ({address})"
                for (job, task), address in self._places.items()
                if (job, task) in lost
            )
            raise LostWorker(
                f"{named} did not answer for {self._patience:.0f} s and was lost; {RESTART}"
            )


def answers(address: str) -> bool:
    """Whether a process listens at host:port."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")  # of an IPv6 address
    try:
        with socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS):
            return True
    except OSError:
        return False

"""Other processes of a training: whether they answer, and when they count as lost."""

import socket
import time

from seq2seq_memattn.training.distributed.cluster import Places

ANSWER_SECONDS = 1.0  # in which another process must answer that is there
LOOK_EVERY = 1.0  # seconds between two looks at those that are waited for

RESTART = "the others end too; start all again: they go on from the last checkpoint"


class LostWorker(Exception):
    """Another process of the cluster ended or does not answer."""


class Peers:
    """Processes that an asynchronous training needs: one worker of all, and every other.

    Args:
        places: host:port of each, by job and task.
        patience: seconds without an answer after which one is lost.
        have_come: whether all were there already; others are waited for until their first answer.
    """

    def __init__(self, places: Places, patience: float, have_come: bool = True) -> None:
        self._places = places
        self._patience = patience
        self._heard = dict.fromkeys(places, time.monotonic()) if have_come else {}

    def check(self) -> None:
        """Looks who answers.

        Raises:
            LostWorker: if all workers, or another process, have not answered for too long.
        """
        for at, address in self._places.items():
            if answers(address):
                self._heard[at] = time.monotonic()
        silent = {
            at for at, when in self._heard.items() if time.monotonic() - when > self._patience
        }
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
    """Whether something listens at host:port."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS):
            return True
    except OSError:
        return False

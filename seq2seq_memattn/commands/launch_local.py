"""Runs a cluster of processes on this machine.

Starts COMMAND once for each process of the cluster. Sets the environment variable TF_CONFIG to tell
each process its role, as schedulers do on several machines. Use this command to try out distributed
training: on one machine, training is faster in a single process, which can use several GPUs. The
processes of this command use only the CPU. On SIGTERM, SIGINT, SIGQUIT or SIGHUP (a closed
terminal), all processes get SIGTERM and the training saves a checkpoint.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType

from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.commands.shared.processes import WITHOUT_BARS, lines_under
from seq2seq_memattn.compute.hardware import num_cores
from seq2seq_memattn.notes import print_note

LOOK_EVERY = 0.1  # seconds
PATIENCE = 90.0  # seconds; longer than `train` waits for a silent process (--peer_timeout)
LAST_WORDS = 10.0  # seconds from SIGTERM to SIGKILL, after a run that no signal ended
HANDED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


class LocalCluster:
    """A cluster of local processes that run the same command.

    Args:
        command: program and arguments.
        num_workers: int > 0. Processes that train.
        num_parameter_servers: int >= 0. If it is above 0, a chief is added, which hands out batches
            to the workers.
        patience: float > 0. Seconds that the other processes get to notice a failure and end.
    """

    def __init__(
        self,
        command: Sequence[str],
        num_workers: int,
        num_parameter_servers: int = 0,
        patience: float = PATIENCE,
    ) -> None:
        self._command = command
        self._patience = patience
        self._jobs = {"worker": num_workers}
        if num_parameter_servers:
            self._jobs = {"chief": 1, "worker": num_workers, "ps": num_parameter_servers}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.caught = 0  # number of the signal received; 0: none
        self._gone = set[int]()  # groups that have ended, whose numbers may be used again

    def run(self) -> int:
        """Runs all processes to their end; returns 0, or the exit status of one that failed."""
        before = {
            number: signal.signal(number, self._hand_on)
            for number in HANDED_ON
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN  # nohup
        }
        with contextlib.ExitStack() as stack:
            try:
                for job, task in self._tasks():
                    stack.enter_context(self._started(job, task))
                return self._watch()
            finally:
                self._end_all()
                for number, handler in before.items():
                    signal.signal(number, handler)

    def _tasks(self) -> list[tuple[str, int]]:
        self._addresses = free_addresses(self._jobs)
        return [(job, task) for job, count in self._jobs.items() for task in range(count)]

    @contextlib.contextmanager
    def _started(self, job: str, task: int) -> Iterator[None]:
        """Starts a process, and shows its lines under its name while the block lasts."""
        is_first = not self._running
        threads = str(max(1, num_cores() // sum(self._jobs.values())))
        environment = {
            # The inter-op threads keep their default: with too few, a worker would wait for itself.
            "TF_NUM_INTRAOP_THREADS": threads,
            **os.environ,
            **WITHOUT_BARS,
            "CUDA_VISIBLE_DEVICES": "-1",  # processes cannot share a GPU to sum gradients
            "TF_CONFIG": tf_config(self._addresses, job, task),
        }
        name = job if job == "chief" else f"{job} {task}"
        with lines_under(name) as stderr:
            self._running[name] = subprocess.Popen(
                self._command,
                env=environment,
                stdout=None if is_first else stderr,
                stderr=stderr,
                process_group=0,  # COMMAND may be a script: signals reach what it runs, too
            )
            if self.caught:  # the signal came before this process was in `_running`
                self._send(signal.SIGTERM)
            yield

    def _hand_on(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.caught = number
        self._send(signal.SIGTERM)  # a second SIGINT would end a training without a checkpoint

    def _send(self, number: int) -> bool:
        """Sends a signal, 0 for none, to all processes; returns whether any is left."""
        groups = {process.pid for process in self._running.values()} - self._gone
        for group in groups:
            try:
                os.killpg(group, number)
            except ProcessLookupError:
                self._gone.add(group)
        return not groups <= self._gone

    def _watch(self) -> int:
        """Waits until all processes have ended; after a failure, for at most `patience` seconds.

        Returns the status of the run; see `run`.
        """
        failed, deadline, told = 0, float("inf"), set[str]()
        while None in self._statuses().values():
            for name, status in self._statuses().items():
                if not status or failed or name in told:
                    continue
                print_note(f"{name} ended with status {status}")
                told.add(name)
                if self._is_needed(name):
                    failed, deadline = status, time.monotonic() + self._patience
            if self._statuses().get("chief") is not None:
                break  # the other processes only serve the chief
            if time.monotonic() > deadline:
                break
            self._send(0)  # notices groups that have ended
            time.sleep(LOOK_EVERY)
        needed = (status for name, status in self._statuses().items() if self._is_needed(name))
        failed = failed or next(filter(None, needed), 0)
        # If a signal ended the process: the status that a shell would report.
        return 128 - failed if failed < 0 else failed

    def _is_needed(self, name: str) -> bool:
        """Whether the cluster ends if this process fails; with a chief, workers may be lost."""
        return "chief" not in self._jobs or not name.startswith("worker")

    def _statuses(self) -> dict[str, int | None]:
        return {name: process.poll() for name, process in self._running.items()}

    def _end_all(self) -> None:
        self._send(signal.SIGTERM)
        # A script ends at once, but a training that it runs first saves a checkpoint.
        deadline = time.monotonic() + (self._patience if self.caught else LAST_WORDS)
        while self._send(0) and time.monotonic() < deadline:
            self._statuses()  # a process that has ended is there until its status is read
            time.sleep(LOOK_EVERY)
        self._send(signal.SIGKILL)
        for process in self._running.values():
            process.wait()


def tf_config(addresses: Mapping[str, Sequence[str]], job: str, task: int) -> str:
    """The value of TF_CONFIG for one process of a cluster."""
    return json.dumps({"cluster": addresses, "task": {"type": job, "index": task}})


def free_addresses(jobs: Mapping[str, int]) -> dict[str, list[str]]:
    """Free addresses on this machine, one for each task of each job."""
    with contextlib.ExitStack() as stack:

        def address() -> str:
            one = stack.enter_context(socket.socket())  # kept open: no port is found twice
            one.bind(("localhost", 0))
            return f"localhost:{one.getsockname()[1]}"

        return {job: [address() for _ in range(count)] for job, count in jobs.items()}


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.integer("num_workers", 2, "worker processes", lower_bound=1)
    flags.integer(
        "num_parameter_servers",
        0,
        "parameter servers of an asynchronous training, which also gets a chief; 0: train "
        "synchronously",
        lower_bound=0,
    )
    flags.integer(
        "restarts", 0, "how many times to restart all processes after one has failed", lower_bound=0
    )
    flags.number(
        "patience",
        PATIENCE,
        "seconds that the other processes get to end by themselves after one has failed; should be "
        "longer than the training's --peer_timeout",
        lower_bound=1.0,
    )
    flags.positional("-- COMMAND")


def main(arguments: cli.Arguments) -> None:
    """Launches the command that follows the flags."""
    if not arguments.rest:
        raise ValueError("expected -- and a command, such as memattn train ...")
    for start in range(arguments.restarts + 1):
        cluster = LocalCluster(
            arguments.rest,
            arguments.num_workers,
            arguments.num_parameter_servers,
            arguments.patience,
        )
        status = cluster.run()
        if not status or cluster.caught:
            break
        if start < arguments.restarts:
            print_note(f"a process ended with status {status}; starting all again")
    sys.exit(status)

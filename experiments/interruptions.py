r"""Kills and stops trainings and says what was lost: python -m experiments.interruptions.

    python -m experiments.interruptions --output=F.json -- \
        --config=copy_20_k4 --data_dir=D --num_updates=150 --checkpoint_minutes=0.01

Trains with what stands behind `--` (options of `train` but `--run_dir`) once to its end. Then again
with SIGKILL at random moments, and again with SIGTERM: the last weights must be those of the first
run, bit for bit. Then on clusters of this machine, of which it kills a worker, the chief, and all
workers of a parameter server: the others must end, and say why.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags

from experiments import cli
from experiments.launch_local import free_addresses
from experiments.records import processor, provenance, write_json
from experiments.run_files import last_checkpoint, read_curve

LOOK_EVERY = 0.01  # seconds
PATIENCE = 300.0  # seconds for anything that is waited for
SPREAD = 3.0  # seconds after a start's first update in which it is killed
TIMINGS = ("seconds", "waiting", "memory")  # beginnings of names in a checkpoint's record
SYNCHRONOUS = {"worker": 4}
ASYNCHRONOUS = {"chief": 1, "worker": 2, "ps": 1}


class Training:
    """Processes of `experiments.train`, alone or as a cluster; each writes into a file."""

    def __init__(
        self, run_dir: Path, arguments: Sequence[str], jobs: dict[str, int] | None = None
    ) -> None:
        self.run_dir = run_dir
        self._logs: list[Path] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.addresses = free_addresses(jobs or {})
        command = [sys.executable, "-m", "experiments.train", *arguments, f"--run_dir={run_dir}"]
        run_dir.parent.mkdir(parents=True, exist_ok=True)
        self._before = logged(run_dir)
        tasks = [(job, task) for job, hosts in self.addresses.items() for task in range(len(hosts))]
        for job, task in tasks or [("", 0)]:
            environment = dict(os.environ)
            if tasks:
                place = {"cluster": self.addresses, "task": {"type": job, "index": task}}
                environment["TF_CONFIG"] = json.dumps(place)
            self._logs.append(run_dir.parent / f"{run_dir.name}_{job}{task}.log")
            with open(self._logs[-1], "wb") as stream:
                self.processes.append(
                    subprocess.Popen(
                        [*command, "--log_every=1"], env=environment, stdout=stream, stderr=stream
                    )
                )

    def wait_for_an_update(self) -> None:
        """Returns when this start has logged an update, or its first process has ended."""
        wait(lambda: logged(self.run_dir) > self._before or self.processes[0].poll() is not None)

    def end(self) -> list[int]:
        """The exit statuses, when all have ended."""
        return [process.wait(PATIENCE) for process in self.processes]

    def said(self, index: int = 0) -> str:
        """What a process wrote."""
        return self._logs[index].read_text(encoding="utf-8")

    def kill(self) -> None:
        """Ends all that are left."""
        for process in self.processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def started(*arguments: Any) -> Iterator[Training]:
    """A `Training` that does not outlive the block."""
    training = Training(*arguments)
    try:
        yield training
    finally:
        training.kill()


def wait(ready: Callable[[], bool]) -> None:
    """Returns when it is; raises ValueError if that takes too long."""
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            raise ValueError(f"a training did not get on for {PATIENCE:.0f} s")
        time.sleep(LOOK_EVERY)


def logged(run_dir: Path) -> int:
    """The last update that a run logged; a line that is being written does not count."""
    with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
        return max((line["update"] for line in read_curve(run_dir)), default=0)
    return 0


def saved(run_dir: Path) -> int:
    """The update of a run's last checkpoint; 0 without one."""
    return int(last_checkpoint(run_dir)[1]["update"])


def is_same(run_dir: Path, expected: Path) -> bool:
    """Whether two runs ended alike: weights, optimiser, random generators, position, scores."""
    (ours, record), (theirs, its_record) = last_checkpoint(run_dir), last_checkpoint(expected)
    return (
        _without_timings(record) == _without_timings(its_record)
        and len(ours) == len(theirs)
        and all(map(np.array_equal, ours.values(), theirs.values()))
    )


def _without_timings(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if not name.startswith(TIMINGS)}


def finish(run_dir: Path, arguments: Sequence[str]) -> str:
    """Trains a run to its end; what it wrote."""
    with started(run_dir, arguments) as training:
        if training.end() != [0]:
            raise ValueError(f"a training failed: {training.said().splitlines()[-1]}")
        return training.said()


def kills(run_dir: Path, whole: Path, arguments: Sequence[str], count: int) -> dict[str, Any]:
    """Kills a run's starts at random moments, then lets it end."""
    generator = np.random.default_rng(2017)
    lost, unreadable = [], 0
    half_written: set[Path] = set()
    for _ in range(count):
        with started(run_dir, arguments) as training:
            training.wait_for_an_update()
            time.sleep(generator.uniform(0.0, SPREAD))
            training.processes[0].send_signal(signal.SIGKILL)
            if training.end() != [-signal.SIGKILL]:
                raise ValueError("the run ended before all kills: give it more updates")
        half_written.update(run_dir.rglob("*.tmp"))
        unreadable += "damaged" in training.said()
        lost.append(logged(run_dir) - saved(run_dir))
    unreadable += "damaged" in finish(run_dir, arguments)
    return {
        "what": "SIGKILL at random moments",
        "count": count,
        "in_the_middle_of_a_file": len(half_written),
        "unreadable_checkpoints": unreadable,
        "most_updates_behind_the_last_checkpoint": max(lost),
        "same_weights": is_same(run_dir, whole),
    }


def stops(run_dir: Path, whole: Path, arguments: Sequence[str], count: int) -> dict[str, Any]:
    """Stops a run's starts by SIGTERM, then lets it end."""
    generator = np.random.default_rng(2017)
    seconds, statuses, goes_on = [], set(), []
    for _ in range(count):
        before = saved(run_dir)
        with started(run_dir, arguments) as training:
            training.wait_for_an_update()
            goes_on.append(not before or f"going on from update {before}\n" in training.said())
            time.sleep(generator.uniform(0.0, SPREAD))
            sent = time.monotonic()
            training.processes[0].send_signal(signal.SIGTERM)
            statuses.update(training.end())
            seconds.append(time.monotonic() - sent)
        goes_on.append(saved(run_dir) == logged(run_dir))
    finish(run_dir, arguments)
    return {
        "what": "SIGTERM",
        "count": count,
        "statuses": sorted(statuses),
        "most_seconds_to_exit": round(max(seconds), 2),
        "goes_on_at_the_next_update": all(goes_on),
        "same_weights": is_same(run_dir, whole),
    }


def loss(
    run_dir: Path, arguments: Sequence[str], jobs: dict[str, int], victims: Sequence[int]
) -> dict[str, Any]:
    """Kills processes of a cluster; how long the others take to end, and what they say."""
    with started(run_dir, arguments, jobs) as training:
        training.wait_for_an_update()
        wait(lambda: saved(run_dir) > 0)
        for victim in victims:
            training.processes[victim].send_signal(signal.SIGKILL)
        killed = time.monotonic()
        statuses = training.end()
        seconds = time.monotonic() - killed
        others = [i for i in range(len(statuses)) if i not in victims]
        said = [re.findall(r".*\bwas lost\b.*|.*\bwere lost\b.*", training.said(i)) for i in others]
    update = saved(run_dir)
    with started(run_dir, arguments, jobs) as training:
        training.wait_for_an_update()
        goes_on = f"going on from update {update}\n" in training.said()
    places = [f"{job} {i}" for job, hosts in training.addresses.items() for i in range(len(hosts))]
    return {
        "what": f"SIGKILL of {', '.join(places[victim] for victim in victims)}",
        "cluster": jobs,
        "seconds_until_all_had_ended": round(seconds, 1),
        "statuses": [statuses[i] for i in others],
        "all_said_it": all(said),
        "a_new_start_goes_on": goes_on,
    }


def main(arguments: list[str]) -> None:
    """Interrupts from flags and the options of `train` behind them."""
    options: Any = flags.FLAGS
    folder = Path(options.work_dir)
    if folder.exists():
        raise ValueError(f"{folder}: expected no such folder; runs of other code may be in it")
    whole, rows = folder / "whole", []
    finish(whole, arguments)
    endless = [*arguments, "--num_updates=1000000", "--checkpoint_minutes=0"]
    waiting = f"--peer_timeout={options.peer_timeout}"
    for row in (
        lambda: kills(folder / "killed", whole, arguments, options.kills),
        lambda: stops(folder / "stopped", whole, arguments, options.stops),
        lambda: loss(folder / "worker", [*endless, waiting], SYNCHRONOUS, [3]),
        lambda: loss(folder / "chief", [*endless, waiting], SYNCHRONOUS, [0]),
        lambda: loss(folder / "workers", [*endless, waiting], ASYNCHRONOUS, [1, 2]),
    ):
        rows.append(row())
        cli.print_note(str(rows[-1]))
    result = {"peer_timeout": options.peer_timeout, "updates": logged(whole), "rows": rows}
    if options.output:
        write_json(Path(options.output), {**provenance(processor()), **result})
    cli.print_result(result)


if __name__ == "__main__":
    flags.DEFINE_integer("kills", 20, "how often SIGKILL ends the run", lower_bound=1)
    flags.DEFINE_integer("stops", 5, "how often SIGTERM ends the run", lower_bound=1)
    flags.DEFINE_float(
        "peer_timeout",
        30.0,
        "seconds without an answer after which a process of a cluster is lost",
        lower_bound=1.0,
    )
    flags.DEFINE_string("work_dir", "runs/interruptions", "where the runs are made")
    flags.DEFINE_string("output", None, "JSON file for the result")
    cli.run(main, accepts_arguments=True)

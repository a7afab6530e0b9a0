r"""Kills and stops trainings and says what was lost: python -m experiments.interruptions.

    python -m experiments.interruptions --output=F.json -- \
        --config=copy_20_k4 --data_dir=D --num_updates=150 --checkpoint_minutes=0.01

Trains with what stands behind `--` (options of `train` but `--run_dir`) once to its end. Then again
with SIGKILL at random moments, and again with SIGTERM: the last weights must be those of the first
run, bit for bit. Then on clusters of this machine, of which it kills a worker, the chief, and all
workers of a parameter server: the others must end, and say why. Then with SIGTERM on two mirrored
devices, with a parameter server that is stopped half-way, and in folders that are full and that
cannot be written, for which it mounts a small file system (without the right to, these two are left
out).
"""

import contextlib
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags

from experiments import cli
from experiments.records import provenance, write_json
from experiments.run_files import read_curve
from experiments.trainings import finish, is_same, logged, saved, started, wait
from seq2seq_memattn.compute.hardware import processor
from seq2seq_memattn.runs.directory import CHECKPOINTS_NAME

SPREAD = 3.0  # seconds after a start's first update in which it is killed
SYNCHRONOUS = {"worker": 4}
ASYNCHRONOUS = {"chief": 1, "worker": 2, "ps": 1}
ROOM = 2**30  # bytes of a file system that is large enough


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
        hosts = [host for task in training.addresses.values() for host in task]
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
        "said_that_one_was_lost": sum(map(bool, said)),
        "named_it": sum(names([hosts[i] for i in victims], hosts, " ".join(text)) for text in said),
        "a_new_start_goes_on": goes_on,
    }


def names(lost: Sequence[str], every: Sequence[str], text: str) -> bool:
    """Whether a text has the addresses of those that were lost, and of no others."""
    return {host for host in every if host in text} == set(lost)


def mirrored(run_dir: Path, arguments: Sequence[str], count: int) -> dict[str, Any]:
    """As `stops`, on two mirrored devices of one process."""
    arguments = [*arguments, "--strategy=mirrored", "--num_devices=2"]
    expected = run_dir.with_name(f"{run_dir.name}_whole")
    finish(expected, arguments)
    lines = read_curve(expected)
    return {
        **stops(run_dir, expected, arguments, count),
        "what": "SIGTERM, two mirrored devices",
        "validation_losses": [line["loss"] for line in lines if line["kind"] == "valid"],
    }


def parameter_server(run_dir: Path, arguments: Sequence[str], num_updates: int) -> dict[str, Any]:
    """Trains a run with a parameter server and two workers in two starts, each to its end."""
    half = num_updates // 2
    for until in (half, num_updates):
        said = finish(run_dir, [*arguments, f"--num_updates={until}"], ASYNCHRONOUS)
    lines = read_curve(run_dir)
    losses = [line["loss"] for line in lines if line["kind"] == "train" and line["loss"]]
    return {
        "what": "parameter server",
        "cluster": ASYNCHRONOUS,
        "updates": saved(run_dir),
        "goes_on_at_the_next_update": f"going on from update {half}\n" in said,
        "losses": [losses[0], losses[-1]],
        "validation_losses": [line["loss"] for line in lines if line["kind"] == "valid"],
    }


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """A file system of some bytes while the block lasts.

    Raises:
        PermissionError: without the right to mount.
    """
    folder.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _mount(*arguments: str) -> None:
    made = subprocess.run(["mount", *arguments], capture_output=True, check=False)
    if made.returncode:
        raise PermissionError(made.stderr.decode(errors="replace").strip())


def full_disk(disk: Path, whole: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """Trains a run where there is room for a checkpoint but not for three; goes on elsewhere."""
    checkpoint = next((whole / CHECKPOINTS_NAME).iterdir())
    elsewhere = disk.with_name("elsewhere")
    with small_disk(disk, checkpoint.stat().st_size * 5 // 2):
        refusal = _refused(disk / "run", arguments)
        shutil.copytree(disk / "run", elsewhere)
    return {"what": "full disk", **refusal, **_went_on(elsewhere, whole, arguments)}


def read_only(disk: Path, whole: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """Stops a run, goes on with its folder read-only, then with the folder as it was."""
    with small_disk(disk, ROOM):
        with started(disk / "run", arguments) as training:
            training.wait_for_an_update()
            training.processes[0].send_signal(signal.SIGTERM)
            training.end()
        _mount("-o", "remount,ro", str(disk))
        refusal = _refused(disk / "run", arguments)
        _mount("-o", "remount,rw", str(disk))
        return {"what": "read-only folder", **refusal, **_went_on(disk / "run", whole, arguments)}


def _refused(run_dir: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """How a start ended that could not write; its output goes to where it can."""
    with started(run_dir, arguments, logs_dir=run_dir.parent.parent) as training:
        (status,) = training.end()
        errors = re.findall("^error: (.*)", training.said(), re.MULTILINE)
    # The disk is called by one of two names.
    for disk in (run_dir.parent.resolve(), run_dir.parent):
        errors = [error.replace(f"{disk}/", "") for error in errors]
    return {"status": status, "errors": errors}


def _went_on(run_dir: Path, whole: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """What the next start of a run went on from, and whether it ended like one without a break."""
    update = saved(run_dir)
    said = finish(run_dir, arguments)
    return {
        "update_of_the_last_checkpoint": update,
        "goes_on_at_the_next_update": f"going on from update {update}\n" in said,
        "same_weights": is_same(run_dir, whole),
    }


def main(arguments: list[str]) -> None:
    """Interrupts from flags and the options of `train` behind them."""
    options: Any = flags.FLAGS
    folder = Path(options.work_dir)
    if folder.exists():
        raise ValueError(f"{folder}: expected no such folder; runs of other code may be in it")
    whole, rows = folder / "whole", []
    endless = [*arguments, "--num_updates=1000000", "--checkpoint_minutes=0"]
    endless.append(f"--peer_timeout={options.peer_timeout}")
    makers: dict[str, Callable[[Path], dict[str, Any]]] = {
        "killed": lambda run_dir: kills(run_dir, whole, arguments, options.kills),
        "stopped": lambda run_dir: stops(run_dir, whole, arguments, options.stops),
        "worker": lambda run_dir: loss(run_dir, endless, SYNCHRONOUS, [3]),
        "chief": lambda run_dir: loss(run_dir, endless, SYNCHRONOUS, [0]),
        "workers": lambda run_dir: loss(run_dir, endless, ASYNCHRONOUS, [1, 2]),
        "mirrored": lambda run_dir: mirrored(run_dir, arguments, options.stops),
        "server": lambda run_dir: parameter_server(run_dir, arguments, logged(whole)),
        "full": lambda disk: full_disk(disk, whole, arguments),
        "read_only": lambda disk: read_only(disk, whole, arguments),
    }
    if unknown := set(options.rows) - set(makers):
        raise ValueError(
            f"--rows: expected some of {', '.join(makers)}; got {', '.join(sorted(unknown))}"
        )
    finish(whole, arguments)
    for name in options.rows or makers:
        try:
            rows.append(makers[name](folder / name))
        except PermissionError as error:
            cli.print_note(f"left out: {error}")
        else:
            cli.print_note(str(rows[-1]))
    result = {"peer_timeout": options.peer_timeout, "updates": logged(whole), "rows": rows}
    if options.output:
        write_json(Path(options.output), {**provenance(processor()), **result})
    cli.print_result(result)


if __name__ == "__main__":
    flags.DEFINE_list("rows", [], "what to do, such as killed,full; all by default")
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

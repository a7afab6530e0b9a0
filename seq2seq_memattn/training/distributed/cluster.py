"""The cluster: which processes train together, and which of them this one is."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from seq2seq_memattn.config import DevicesConfig

VARIABLE = "TF_CONFIG"  # environment variable that tf.distribute and many schedulers use
JOBS = ("chief", "worker", "ps")

Places = dict[tuple[str, int], str]  # host:port by job and task


class Cluster(NamedTuple):
    """The processes of a training.

    Fields:
        addresses: host:port of every task, by job.
        job: this process's job.
        task: int. This process's number within the job.
    """

    addresses: dict[str, list[str]]
    job: str
    task: int

    @property
    def is_asynchronous(self) -> bool:
        """Whether the cluster has parameter servers."""
        return "ps" in self.addresses

    @property
    def serves(self) -> bool:
        """Whether this process only executes requests of the chief."""
        return self.is_asynchronous and self.job != "chief"

    @property
    def size(self) -> int:
        """The number of processes."""
        return sum(map(len, self.addresses.values()))

    def places(self) -> Places:
        """The addresses of all tasks by job and task, the chief's first."""
        return {
            (job, task): address
            for job in JOBS
            for task, address in enumerate(self.addresses.get(job, []))
        }

    @property
    def position(self) -> int:
        """The index of this process in `places`."""
        return list(self.places()).index((self.job, self.task))


def find_cluster(config: DevicesConfig, environment: Mapping[str, str]) -> Cluster | None:
    """The cluster that the options or `TF_CONFIG` describe; None if this process is alone.

    Raises:
        ValueError: if the description is wrong, or both the options and `TF_CONFIG` have one.
    """
    value = environment.get(VARIABLE, "")
    if not config.workers:
        if config.task_index != -1:
            raise ValueError("--task_index: expected --workers too")
        return _from_variable(value) if value else None
    if value:
        raise ValueError(f"--workers: expected no {VARIABLE}, which also describes a cluster")
    addresses = [address.strip() for address in config.workers.split(",")]
    cluster = Cluster({"worker": addresses}, "worker", config.task_index)
    return _checked(cluster, "--workers and --task_index")


def _from_variable(value: str) -> Cluster | None:
    try:
        content = json.loads(value)
        jobs = {job: list(addresses) for job, addresses in content.get("cluster", {}).items()}
        if not jobs:
            return None
        task = content.get("task", {})
        cluster = Cluster(jobs, task["type"], int(task["index"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f'{VARIABLE}: expected {{"cluster": {{"worker": ["host:port", ...]}}, "task": '
            f'{{"type": "worker", "index": 0}}}}; got {value!r} ({error!r})'
        ) from error
    return _checked(cluster, VARIABLE)


def _checked(cluster: Cluster, name: str) -> Cluster:
    jobs, job, task = cluster
    unknown = sorted({*jobs, job} - set(JOBS))
    if unknown:
        raise ValueError(f"{name}: expected the jobs {', '.join(JOBS)}; got {unknown[0]!r}")
    every = [address for addresses in jobs.values() for address in addresses]
    for address in every:
        host, _, port = str(address).rpartition(":")
        if not host or not port.isdecimal():
            raise ValueError(f"{name}: expected host:port; got {address!r}")
    if len(set(every)) < len(every):
        raise ValueError(f"{name}: expected addresses that differ; got {', '.join(every)}")
    if not 0 <= task < len(jobs.get(job, ())):
        raise ValueError(f"{name}: expected a task of {_described(jobs)}; got {job} {task}")
    if cluster.is_asynchronous and not (len(jobs.get("chief", ())) == 1 and jobs.get("worker")):
        raise ValueError(
            f"{name}: expected one chief and at least one worker with parameter servers; got "
            f"{_described(jobs)}"
        )
    if len(jobs.get("chief", ())) > 1:
        raise ValueError(f"{name}: expected one chief; got {len(jobs['chief'])}")
    return cluster


def _described(jobs: Mapping[str, Any]) -> str:
    return ", ".join(f"{job} 0 to {len(addresses) - 1}" for job, addresses in jobs.items())

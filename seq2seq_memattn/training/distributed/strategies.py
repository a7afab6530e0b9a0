"""Chooses the devices and processes of a training on TensorFlow."""

import os
import signal
import time
from collections.abc import Collection
from typing import Any

import numpy as np
import tensorflow as tf

from seq2seq_memattn.compute.private import wait_for_peers
from seq2seq_memattn.config import DevicesConfig
from seq2seq_memattn.notes import STANDARD_ERROR
from seq2seq_memattn.training.distributed.cluster import VARIABLE, Cluster, find_cluster
from seq2seq_memattn.training.distributed.peers import LOOK_EVERY, LostWorker, Peers, answers
from seq2seq_memattn.training.distributed.workers import ALONE, Devices, Workers


def make_devices(config: DevicesConfig) -> Devices:
    """Makes the strategy and the workers; call it before TensorFlow computes anything.

    Args:
        config: the options.

    Raises:
        ValueError: if the options do not fit together or do not fit the cluster or the machine.
        LostWorker: if the other processes do not start in time.
        SystemExit: with 0, in a process that only serves the chief of a cluster with parameter
            servers, when the chief has ended.
    """
    cluster = find_cluster(config, os.environ)
    name = _chosen(config, cluster)
    if name == "one_device":
        return Devices(one_device(), ALONE)
    if name == "mirrored":
        return Devices(_mirrored(config.num_devices), ALONE)
    start = _multi_worker if name == "multi_worker" else _parameter_server
    return start(cluster, config)


def is_asynchronous(strategy: tf.distribute.Strategy) -> bool:
    """Whether each worker of the strategy updates at its own pace."""
    return isinstance(strategy, tf.distribute.ParameterServerStrategy)


def local_replicas(strategy: tf.distribute.Strategy) -> int:
    """The number of replicas in this process."""
    return len(strategy.extended.worker_devices)


def this_replica(strategy: tf.distribute.Strategy) -> int:
    """The index within this process of the replica that is being traced."""
    number = tf.distribute.get_replica_context().replica_id_in_sync_group
    return int(tf.get_static_value(number)) % local_replicas(strategy)


def first_replica(strategy: tf.distribute.Strategy) -> int:
    """The index of this process's first replica among all replicas."""
    numbers: list[int] = []

    def number(context: Any) -> Any:
        numbers.append(context.replica_id_in_sync_group)
        return tf.constant(0)

    strategy.experimental_distribute_values_from_function(number)
    return numbers[0]


def _chosen(config: DevicesConfig, cluster: Cluster | None) -> str:
    is_asynchronous = cluster is not None and cluster.is_asynchronous
    fitting = "parameter_server" if is_asynchronous else "multi_worker"
    is_several = cluster is not None and cluster.size > 1
    if config.num_devices and (config.strategy not in ("auto", "mirrored") or is_several):
        raise ValueError("--num_devices: expected --strategy=mirrored too, and no cluster")
    if config.strategy == "auto":
        if is_several:
            return fitting
        several = len(tf.config.list_physical_devices("GPU")) > 1 or config.num_devices
        return "mirrored" if several else "one_device"
    of_clusters = config.strategy in ("multi_worker", "parameter_server")
    if of_clusters and (cluster is None or config.strategy != fitting):
        wanted = (
            "a cluster with parameter servers"
            if fitting == "multi_worker"
            else "a cluster without parameter servers"
        )
        got = "none" if cluster is None else f"jobs {', '.join(cluster.addresses)}"
        kind = "a cluster" if cluster is None else wanted
        raise ValueError(
            f"--strategy={config.strategy}: expected {kind}, from {VARIABLE} or, for multi_worker, "
            f"--workers; got {got}"
        )
    if not of_clusters and cluster is not None and cluster.size > 1:
        raise ValueError(
            f"--strategy={config.strategy}: expected no cluster; {VARIABLE} or --workers names "
            f"{cluster.size} processes"
        )
    return config.strategy


def one_device() -> tf.distribute.Strategy:
    """A strategy with one replica, on the first GPU if there is one, else on the CPU."""
    device = "/gpu:0" if tf.config.list_physical_devices("GPU") else "/cpu:0"
    return tf.distribute.OneDeviceStrategy(device)


def _mirrored(num_devices: int) -> tf.distribute.Strategy:
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        if num_devices > len(gpus):
            raise ValueError(f"--num_devices: expected at most {len(gpus)} GPUs; got {num_devices}")
        return tf.distribute.MirroredStrategy([f"GPU:{i}" for i in range(num_devices or len(gpus))])
    if not num_devices:
        raise ValueError("--strategy=mirrored: expected GPUs, or --num_devices to split the CPU")
    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration()] * num_devices
    if tf.config.get_logical_device_configuration(cpu) != parts:
        tf.config.set_logical_device_configuration(cpu, parts)
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(num_devices)])


def _multi_worker(cluster: Any, config: DevicesConfig) -> Devices:
    wait_for_peers(cluster.addresses, config.start_timeout, config.peer_timeout)
    addresses = list(cluster.places().values())
    implementations = tf.distribute.experimental.CommunicationImplementation
    has_gpus = bool(tf.config.list_physical_devices("GPU"))
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=implementations.NCCL if has_gpus else implementations.RING
    )
    # While this process waits for the others, signals may end it: there is nothing to save yet, and
    # Python's handlers would only run after the wait.
    ending = (signal.SIGTERM, signal.SIGINT)
    handlers = [signal.signal(number, signal.SIG_DFL) for number in ending]
    try:
        strategy = tf.distribute.MultiWorkerMirroredStrategy(_resolver(cluster), options)
    except tf.errors.OpError as error:
        limit = f" within {config.start_timeout:.0f} s"
        within = limit if isinstance(error, tf.errors.DeadlineExceededError) else ""
        raise LostWorker(
            f"the processes {', '.join(addresses)} did not connect{within} "
            f"({error.message.splitlines()[0]})"
        ) from error
    finally:
        for number, handler in zip(ending, handlers, strict=True):
            signal.signal(number, handler)
    if cluster.size == 1:
        return Devices(strategy, ALONE)
    workers = Workers(cluster.places(), cluster.position, _summing(strategy))
    return Devices(strategy, workers, cluster.size)


def _summing(strategy: tf.distribute.Strategy) -> Any:
    """Returns a function that sums an array over all processes."""

    def replica(x: Any) -> Any:
        own = tf.zeros_like(x) if this_replica(strategy) else tf.identity(x)
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, own)

    @tf.function(autograph=False, reduce_retracing=True)
    def total(x: Any) -> Any:
        return strategy.run(replica, args=(x,))

    def call(array: Any) -> Any:
        # Each new size is traced, so sizes are rounded up to powers of two. Integers become int64,
        # because GPUs cannot sum int32.
        size = 1 << max(len(array) - 1, 1).bit_length()
        wide = array.astype(np.int64 if array.dtype.kind == "i" else np.float64)
        padded = tf.constant(np.pad(wide, (0, size - len(array))))
        result = strategy.experimental_local_results(total(padded))[0]
        return np.asarray(result)[: len(array)].astype(array.dtype)

    return call


def _parameter_server(cluster: Any, config: DevicesConfig) -> Devices:
    if cluster.serves:
        _serve(cluster, config)
    count = len(cluster.addresses["worker"])
    places = cluster.places()
    chief = {("chief", 0): places.pop(("chief", 0))}
    _wait_for(places.values(), config.start_timeout)
    workers = Workers(chief, servers=places, patience=config.peer_timeout)
    with workers.named_losses():
        strategy = tf.distribute.ParameterServerStrategy(_resolver(cluster))
    return Devices(strategy, workers, count)


def _wait_for(addresses: Collection[str], seconds: float) -> None:
    """Waits until all servers listen; without them, TensorFlow would wait for ever.

    Raises:
        LostWorker: if a server does not listen within this many seconds.
    """
    deadline = time.monotonic() + seconds
    while missing := [address for address in addresses if not answers(address)]:
        if time.monotonic() > deadline:
            raise LostWorker(f"{', '.join(missing)} did not start within {seconds:.0f} s")
        time.sleep(LOOK_EVERY)


def _resolver(cluster: Cluster) -> Any:
    """TensorFlow's description of a cluster."""
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(cluster.addresses),
        task_type=cluster.job,
        task_id=cluster.task,
        rpc_layer="grpc",
        # Otherwise, MultiWorkerMirroredStrategy would not use them.
        num_accelerators={"GPU": len(tf.config.list_physical_devices("GPU"))},
    )


def _serve(cluster: Cluster, config: DevicesConfig) -> None:
    """Serves the chief until the chief has ended; never returns.

    This process also ends when other processes that the training needs are lost: the chief ends for
    the same reason, and waiting for the chief would only double the delay. A signal that ends a
    training reaches all its processes. The chief still needs this process to save a checkpoint, so
    this process acts on the signal only when the chief has ended.

    Raises:
        LostWorker: if the chief does not start in time, or processes that the training needs are
            lost.
        SystemExit: with 0, when the chief has ended.
    """
    signals: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: signals.append(number))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    places = cluster.places()
    try:
        server = tf.distribute.Server(
            tf.train.ClusterSpec(cluster.addresses),
            job_name=cluster.job,
            task_index=cluster.task,
            protocol="grpc",
        )
    except tf.errors.OpError as error:  # the address may still be in use by an earlier start
        address = places[cluster.job, cluster.task]
        raise LostWorker(f"{address}: {error.message.splitlines()[0]}") from error
    chief = places.pop(("chief", 0))
    del places[cluster.job, cluster.task]
    if cluster.job == "worker":  # this worker suffices: no other worker is needed
        places = {at: address for at, address in places.items() if at[0] != "worker"}
    peers = Peers(places, config.peer_timeout, have_come=False)
    heard, limit, came = time.monotonic(), config.start_timeout, False
    while True:
        if answers(chief):
            heard, limit, came = time.monotonic(), config.peer_timeout, True
        elif signals or time.monotonic() - heard >= limit:
            break
        if not signals:
            peers.check()
        time.sleep(LOOK_EVERY)
    del server
    for number, handler in before.items():
        signal.signal(number, handler)
    if signals:
        signal.raise_signal(signals[0])
    if not came:
        raise LostWorker(f"the chief ({chief}) did not start within {config.start_timeout:.0f} s")
    print(f"the chief ({chief}) has ended or was lost; see its output", file=STANDARD_ERROR)
    raise SystemExit(0)

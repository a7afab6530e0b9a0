import signal
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf

from seq2seq_memattn.config import DevicesConfig
from seq2seq_memattn.training.distributed import strategies
from seq2seq_memattn.training.distributed.cluster import Cluster
from seq2seq_memattn.training.distributed.peers import LostWorker
from seq2seq_memattn.training.make import find_devices

WORKERS = Cluster({"worker": ["a:1", "b:2"]}, "worker", 0)
ALONE = Cluster({"worker": ["a:1"]}, "worker", 0)
SERVERS = Cluster({"chief": ["a:1"], "worker": ["b:2"], "ps": ["c:3"]}, "chief", 0)


@pytest.mark.parametrize(
    ("options", "cluster", "expected"),
    [
        ({}, None, "one_device"),
        ({}, ALONE, "one_device"),
        ({}, WORKERS, "multi_worker"),
        ({}, SERVERS, "parameter_server"),
        ({"num_devices": 2}, None, "mirrored"),
        ({"strategy": "mirrored", "num_devices": 2}, None, "mirrored"),
        ({"strategy": "multi_worker"}, ALONE, "multi_worker"),
        ({"strategy": "one_device"}, ALONE, "one_device"),
    ],
)
def test_a_strategy_is_chosen_by_the_cluster(
    options: dict[str, Any], cluster: Cluster | None, expected: str
) -> None:
    assert strategies._chosen(DevicesConfig(**options), cluster) == expected


@pytest.mark.parametrize(
    ("options", "cluster", "message"),
    [
        ({"strategy": "multi_worker"}, None, "expected a cluster, from TF_CONFIG or"),
        ({"strategy": "multi_worker"}, SERVERS, "expected a cluster without parameter servers"),
        ({"strategy": "parameter_server"}, WORKERS, "expected a cluster with parameter servers"),
        (
            {"strategy": "one_device"},
            WORKERS,
            "expected no cluster; TF_CONFIG or --workers names 2",
        ),
        ({"strategy": "mirrored"}, WORKERS, "expected no cluster"),
        ({"num_devices": 2}, WORKERS, "--num_devices: expected --strategy=mirrored too"),
        ({"num_devices": 2, "strategy": "one_device"}, None, "--num_devices: expected"),
    ],
)
def test_what_does_not_fit_the_cluster_is_refused(
    options: dict[str, Any], cluster: Cluster | None, message: str
) -> None:
    with pytest.raises(ValueError) as error:
        strategies._chosen(DevicesConfig(**options), cluster)
    assert message in str(error.value)


def test_a_chief_names_the_servers_that_do_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(strategies, "answers", lambda address: address == "b:2")
    with pytest.raises(LostWorker, match="^c:3 did not start within 0 s$"):
        strategies._wait_for(["b:2", "c:3"], 0.05)
    strategies._wait_for(["b:2"], 0.0)


def test_a_worker_names_the_chief_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(strategies, "answers", lambda address: False)
    monkeypatch.setattr(tf.distribute, "Server", lambda *given, **options: object())
    cluster = Cluster(SERVERS.addresses, "worker", 0)
    with pytest.raises(LostWorker, match=r"^the chief \(a:1\) did not start within 1 s$"):
        strategies._serve(cluster, DevicesConfig(start_timeout=1.0))


def test_a_worker_ends_only_when_its_chief_no_longer_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def answer(address: str) -> bool:
        asked.append(address)
        return address != "a:1" or asked.count("a:1") <= 3

    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(strategies, "time", clock)
    monkeypatch.setattr(strategies, "LOOK_EVERY", 1.0)  # as long as the patience
    monkeypatch.setattr(strategies, "answers", answer)
    monkeypatch.setattr(strategies.Peers, "check", lambda self: None)
    monkeypatch.setattr(tf.distribute, "Server", lambda *given, **options: object())
    cluster = Cluster(SERVERS.addresses, "worker", 0)
    with pytest.raises(SystemExit) as ended:
        strategies._serve(cluster, DevicesConfig(peer_timeout=1.0))
    assert ended.value.code == 0
    assert asked.count("a:1") == 4


def test_workers_name_each_other_if_they_do_not_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> None:
        raise tf.errors.DeadlineExceededError(None, None, "Barrier timed out\nmore")

    monkeypatch.setattr(strategies, "wait_for_peers", lambda *given: None)
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", fail)
    message = r"^the processes a:1, b:2 did not connect within 600 s \(Barrier timed out\)$"
    with pytest.raises(LostWorker, match=message):
        strategies._multi_worker(WORKERS, DevicesConfig(start_timeout=600.0))


def test_signals_may_end_a_process_that_waits_for_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ending = (signal.SIGTERM, signal.SIGINT)
    before, seen = list(map(signal.getsignal, ending)), []

    def wait(*given: Any) -> None:
        seen.extend(map(signal.getsignal, ending))
        raise tf.errors.DeadlineExceededError(None, None, "Barrier timed out")

    monkeypatch.setattr(strategies, "wait_for_peers", lambda *given: None)
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", wait)
    with pytest.raises(LostWorker):
        strategies._multi_worker(WORKERS, DevicesConfig())
    assert seen == [signal.SIG_DFL, signal.SIG_DFL]
    assert list(map(signal.getsignal, ending)) == before


def test_workers_use_the_gpus_that_they_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [f"{kind}:0", f"{kind}:1"])
    assert strategies._resolver(WORKERS).num_accelerators() == {"GPU": 2}


@pytest.mark.parametrize("job", ["worker", "ps"])
def test_an_address_in_use_is_an_error_after_which_one_tries_again(
    job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any, **options: Any) -> None:
        raise tf.errors.UnknownError(None, None, "Could not start gRPC server\nmore")

    monkeypatch.setattr(tf.distribute, "Server", fail)
    monkeypatch.setattr(strategies.signal, "signal", lambda number, handler: None)
    addresses = {"chief": ["a:1"], "worker": ["b:2"], "ps": ["c:3"]}
    cluster = Cluster(addresses, job, 0)
    address = {"worker": "b:2", "ps": "c:3"}[job]
    with pytest.raises(LostWorker, match=f"^{address}: Could not start gRPC server$"):
        strategies._serve(cluster, DevicesConfig())


def test_mirrored_needs_several_devices() -> None:
    with pytest.raises(ValueError, match="expected GPUs, or --num_devices to split the CPU"):
        strategies.make_devices(DevicesConfig(strategy="mirrored"))


def test_jax_has_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keras.backend.backend", lambda: "jax")
    assert find_devices(DevicesConfig()).strategy is None
    for options in (
        {"strategy": "mirrored"},
        {"num_devices": 2},
        {"workers": "a:1,b:2", "task_index": 0},
    ):
        with pytest.raises(ValueError, match="JAX trains on one device"):
            find_devices(DevicesConfig(**options))

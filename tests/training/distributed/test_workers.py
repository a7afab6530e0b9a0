import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import keras
import numpy as np
import pytest

from seq2seq_memattn.training.distributed.cluster import Places
from seq2seq_memattn.training.distributed.peers import LostWorker
from seq2seq_memattn.training.distributed.workers import ALONE, Workers
from seq2seq_memattn.training.start import agree_on
from tests.tolerances import as_array

HOSTS = ("a:1", "b:2", "c:3")
PLACES = {("worker", task): host for task, host in enumerate(HOSTS)}


def together(work: Callable[[Workers], Any], count: int = 3) -> list[Any]:
    """The result of `work` in each of several threads, which sum like processes."""
    barrier, given = threading.Barrier(count), [np.zeros(0)] * count

    def workers(index: int) -> Workers:
        def total(values: Any) -> Any:
            given[index] = values
            barrier.wait(10)
            result = np.sum(given, axis=0, dtype=values.dtype)
            barrier.wait(10)
            return result

        return Workers(dict(list(PLACES.items())[:count]), index, total)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, [workers(index) for index in range(count)]))


def test_the_first_is_the_chief() -> None:
    assert together(lambda workers: (workers.is_chief, len(workers))) == [
        (True, 3),
        (False, 3),
        (False, 3),
    ]
    assert ALONE.is_chief
    assert len(ALONE) == 1


def test_shares_are_all_the_work_once() -> None:
    for count in (0, 1, 2, 7):
        shares = together(lambda workers, count=count: list(workers.share_of(count)))
        assert sorted(sum(shares, [])) == list(range(count))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_totals_are_sums_whatever_their_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seq2seq_memattn.training.distributed.workers.MESSAGE", 4)
    for dtype in (np.int32, np.float64):
        values = np.arange(10, dtype=dtype)
        for found in together(lambda workers, v=values: workers.total(v * (workers.index + 1))):
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, values * 6)
    np.testing.assert_array_equal(ALONE.total(np.arange(3)), np.arange(3))


def test_the_largest_of_all_is_known_to_all() -> None:
    assert together(lambda workers: workers.largest(15 * (workers.index == 1))) == [15] * 3
    assert together(lambda workers: workers.largest(0)) == [0] * 3
    assert ALONE.largest(2) == 2


@pytest.mark.parametrize("value", [None, {"update": 3, "best": 1.5, "name": "dö"}, [], "x" * 1001])
def test_everyone_gets_the_chiefs_value(value: Any) -> None:
    found = together(lambda workers: workers.from_chief(value if workers.is_chief else "other"))
    assert found == [value] * 3
    assert ALONE.from_chief(value) is value


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "uint8"])
def test_everyones_variables_become_the_chiefs(dtype: str) -> None:
    def assigned(workers: Workers) -> list[Any]:
        values = (np.arange(5) + 10 * workers.index, np.array(7 + workers.index), np.zeros((2, 0)))
        variables = [keras.Variable(value, dtype=dtype) for value in values]
        workers.assign_from_chief(variables)
        return [as_array(variable) for variable in variables]

    first, *others = together(assigned)
    for other in others:
        for ours, theirs in zip(other, first, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(first[0].astype(int), np.arange(5))
    assert int(first[1]) == 7


def lost(
    message: str,
    kind: str = "UnavailableError",
    index: int = 0,
    places: Places = PLACES,
    servers: Places | None = None,
) -> str:
    import tensorflow as tf

    workers = Workers(places, index, servers=servers)
    with pytest.raises(LostWorker) as error, workers.named_losses():
        raise getattr(tf.errors, kind)(None, None, message)
    assert "\n" not in str(error.value)
    return str(error.value)


RESET = (
    "Graph execution error:\n\nCollective ops is aborted by: recvmsg:Connection reset by peer\n"
    "Additional GRPC error information from remote target {} while calling RecvBuf:\n"
    ':UNKNOWN:Error {{grpc_status:14, grpc_message:"Connection reset by peer"}}'
)


def test_a_lost_worker_is_named() -> None:
    message = lost(RESET.format("/job:worker/replica:0/task:2"))
    assert message.startswith("worker 2 (c:3) was lost (Connection reset by peer); ")
    silent = "unhealthy tasks (stopped sending heartbeats):\n/job:worker/replica:0/task:1\nRestart"
    message = lost(silent, "InternalError")
    assert message.startswith("worker 1 (b:2) was lost (stopped sending heartbeats); ")
    # The process's own task in an error does not say which process was lost.
    heard = lost("Error from /job:worker/task:1\nconnection lost", index=1)
    assert heard.startswith("one of a:1, b:2, c:3 was lost (connection lost); ")


def test_where_a_chief_has_a_job_of_its_own_workers_are_counted_from_0() -> None:
    places = {("chief", 0): "a:1", ("worker", 0): "b:2", ("worker", 1): "c:3"}
    message = lost(RESET.format("/job:worker/replica:0/task:0"), places=places)
    assert message.startswith("worker 0 (b:2) was lost")
    message = lost(RESET.format("/job:chief/replica:0/task:0"), places=places, index=1)
    assert message.startswith("chief 0 (a:1) was lost")


def test_a_server_may_be_lost_too() -> None:
    servers = {("worker", 0): "b:2", ("ps", 0): "c:3"}
    message = lost("/job:ps/replica:0/task:0: gone", places={("chief", 0): "a:1"}, servers=servers)
    assert message.startswith("ps 0 (c:3) was lost")


def test_a_process_with_other_options_or_data_is_refused() -> None:
    def refusal(workers: Workers) -> str:
        options = {
            "training": {"seed": int(workers.index == 1), "batch_size": 8},
            "data": {"manifest": "changed" if workers.index == 2 else "same"},
            "start": {"init_from": f"on machine {workers.index}"},
        }
        try:
            agree_on(options, workers)
        except ValueError as error:
            return str(error)
        return ""

    assert together(refusal) == [
        "",
        "other options or data than the chief has: seed is 1, not 0",
        "other options or data than the chief has: manifest is 'changed', not 'same'",
    ]


def test_other_errors_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    import tensorflow as tf

    there = {"b:2", "c:3"}
    monkeypatch.setattr("seq2seq_memattn.training.distributed.workers.answers", there.__contains__)

    with pytest.raises(ValueError, match="^wrong$"), Workers(PLACES).named_losses():
        raise ValueError("wrong")
    with pytest.raises(tf.errors.UnavailableError), ALONE.named_losses():
        raise tf.errors.UnavailableError(None, None, "alone")
    # An error of this process itself would occur again at the next start.
    with pytest.raises(tf.errors.InternalError), Workers(PLACES).named_losses():
        raise tf.errors.InternalError(None, None, "/job:worker/task:1: cuDNN does not like this")
    # If another process is gone, its loss is the cause of the same error.
    there.remove("c:3")
    said = r"^one of .* \(NCCL: unhandled system error\); "
    with pytest.raises(LostWorker, match=said), Workers(PLACES).named_losses():
        raise tf.errors.InternalError(None, None, "NCCL: unhandled system error")


SERVERS = {("worker", 0): "a:1", ("worker", 1): "b:2", ("ps", 0): "c:3"}


def serving(monkeypatch: pytest.MonkeyPatch, answering: tuple[str, ...]) -> Workers:
    monkeypatch.setattr("seq2seq_memattn.training.distributed.workers.LOOK_EVERY", 0.01)
    monkeypatch.setattr(
        "seq2seq_memattn.training.distributed.peers.answers", answering.__contains__
    )
    return Workers({("chief", 0): "d:4"}, servers=SERVERS, patience=0.1)


def test_work_is_waited_for_while_what_it_needs_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released = threading.Event()
    threading.Timer(0.5, released.set).start()
    assert serving(monkeypatch, ("b:2", "c:3")).served(lambda: released.wait(10))


def test_work_is_given_up_when_no_worker_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LostWorker, match=r"worker 0 \(a:1\), worker 1 \(b:2\) did not answer"):
        serving(monkeypatch, ("c:3",)).served(lambda: threading.Event().wait(10))


def test_so_it_is_when_one_that_holds_weights_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LostWorker, match=r"^ps 0 \(c:3\) did not answer for 0 s"):
        serving(monkeypatch, ("a:1", "b:2")).served(lambda: threading.Event().wait(10))


def test_errors_of_served_work_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        serving(monkeypatch, ("a:1",)).served(lambda: 1 // 0)
    assert ALONE.served(lambda: 3) == 3

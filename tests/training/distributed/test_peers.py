import socket
from types import SimpleNamespace

import pytest

from seq2seq_memattn.training.distributed import peers
from seq2seq_memattn.training.distributed.peers import LostWorker, Peers, answers

PLACES = {("worker", 0): "a:1", ("worker", 1): "b:2", ("ps", 0): "c:3"}


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, which tests set."""
    seconds = [0.0]
    monkeypatch.setattr(peers, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    return seconds


def test_what_listens_answers() -> None:
    with socket.create_server(("localhost", 0)) as server:
        address = f"localhost:{server.getsockname()[1]}"
        assert answers(address)
    assert not answers(address)


def test_the_brackets_of_an_ipv6_address_are_not_part_of_the_host() -> None:
    try:
        server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with server:
        assert answers(f"[::1]:{server.getsockname()[1]}")


@pytest.mark.parametrize(
    ("answering", "lost"),
    [
        ({"a:1", "b:2", "c:3"}, ""),
        ({"b:2", "c:3"}, ""),  # one worker is enough
        ({"c:3"}, "worker 0 (a:1), worker 1 (b:2)"),
        ({"a:1", "b:2"}, "ps 0 (c:3)"),
        (set(), "worker 0 (a:1), worker 1 (b:2), ps 0 (c:3)"),
    ],
)
def test_the_lost_are_those_that_a_training_cannot_do_without(
    monkeypatch: pytest.MonkeyPatch, now: list[float], answering: set[str], lost: str
) -> None:
    monkeypatch.setattr(peers, "answers", answering.__contains__)
    watched = Peers(PLACES, 0.05)
    watched.check()  # no process has been silent for long
    now[0] += 0.1
    if not lost:
        watched.check()
        return
    with pytest.raises(LostWorker) as error:
        watched.check()
    assert str(error.value).startswith(f"{lost} did not answer for 0 s and was lost; ")


def test_a_process_that_answers_is_not_lost_because_others_take_long(
    monkeypatch: pytest.MonkeyPatch, now: list[float]
) -> None:
    def answer(address: str) -> bool:
        now[0] += 2.0 * (address == "b:2")
        return address != "b:2"

    monkeypatch.setattr(peers, "answers", answer)
    watched = Peers(PLACES, 1.0)
    for _ in range(3):
        watched.check()


def test_those_that_have_not_come_are_not_lost(
    monkeypatch: pytest.MonkeyPatch, now: list[float]
) -> None:
    there: set[str] = set()
    monkeypatch.setattr(peers, "answers", there.__contains__)
    watched = Peers(PLACES, 0.05, have_come=False)
    now[0] += 0.1
    watched.check()
    there.update({"b:2", "c:3"})
    watched.check()
    there.clear()
    now[0] += 0.1
    with pytest.raises(LostWorker, match=r"^ps 0 \(c:3\) did not answer"):
        watched.check()  # worker 0 may still start


def test_a_process_without_workers_to_watch_does_not_miss_them(
    monkeypatch: pytest.MonkeyPatch, now: list[float]
) -> None:
    monkeypatch.setattr(peers, "answers", {"c:3"}.__contains__)
    watched = Peers({("ps", 0): "c:3"}, 0.05)
    now[0] += 0.1
    watched.check()

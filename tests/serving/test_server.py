import contextlib
import json
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from seq2seq_memattn.serving import server
from seq2seq_memattn.serving.http import app, connections
from seq2seq_memattn.serving.options import ServerOptions
from seq2seq_memattn.serving.server import serve
from tests.serving.gate import Gate

POST = b"POST /v1/models/reverser:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


def serve_while(
    folder: Path, scenario: Callable[[str], Any], **options: Any
) -> tuple[dict[str, float], Any]:
    """Serves until a scenario has ended; returns the server's figures and the scenario's result."""
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with ThreadPoolExecutor(1) as thread:
        futures: list[Future[Any]] = []

        def play(url: str) -> Any:
            try:
                return scenario(url)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        figures = serve(
            {"reverser": folder},
            ServerOptions(**{"port": 0, **options}),
            lambda url: futures.append(thread.submit(play, url)),
        )
        result = futures[0].result(10)
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith(("batch", "versions", "asyncio"))]
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == handlers
    return figures, result


def predict(url: str, *texts: str) -> httpx.Response:
    body = {"instances": list(texts)}
    return httpx.post(f"{url}v1/models/reverser:predict", json=body, timeout=30)


def test_it_serves_until_it_is_told_to_end(reverser_folder: Path) -> None:
    figures, answers = serve_while(
        reverser_folder, lambda url: [predict(url, "a b", "c"), predict(url, "@")]
    )
    assert [answer.status_code for answer in answers] == [200, 400]
    assert answers[0].json()["predictions"][0]["translations"] == ["b a", "b a!"]
    assert figures["requests"] == 2 and figures["rows"] == 2
    assert figures["seconds"] > 0


def test_a_signal_that_comes_before_it_listens_ends_it(
    reverser_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = uvicorn.Server.run

    def signalled(server: uvicorn.Server, sockets: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)  # before uvicorn handles signals
        run(server, sockets)

    monkeypatch.setattr(uvicorn.Server, "run", signalled)
    urls: list[str] = []
    figures = serve({"reverser": reverser_folder}, ServerOptions(port=0), urls.append)
    assert len(urls) == 1 and figures["requests"] == 0


def test_what_is_in_flight_at_the_end_is_answered(
    reverser_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scenario(url: str) -> Future[httpx.Response]:
        gate = Gate(monkeypatch)
        asking = client.submit(predict, url, "a b")
        assert gate.is_reached.wait(10)
        gate.open_soon()
        return asking  # then the server gets SIGTERM

    with ThreadPoolExecutor(1) as client:
        figures, asking = serve_while(reverser_folder, scenario)
        answer = asking.result(10)  # the server has ended, so nothing more will arrive
    assert answer.json()["predictions"][0]["translations"][0] == "b a"
    assert figures["rows"] == 1


def test_rows_of_a_client_that_went_away_are_not_computed(
    reverser_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps({"instances": ["a"] * 30}).encode()
    gone = 'requests_total{code="499",model="reverser",signature="serving_default"} 1.0'

    def scenario(url: str) -> tuple[int, int]:
        gate = Gate(monkeypatch)
        with connect(url) as client:
            client.sendall(POST % len(body) + body)
            assert gate.is_reached.wait(10)
        deadline = time.monotonic() + 10
        while gone not in httpx.get(f"{url}metrics").text:
            assert time.monotonic() < deadline
        gate.open()
        return predict(url, "a").status_code, gate.num_batches

    _, found = serve_while(reverser_folder, scenario, max_batch=1)
    assert found == (200, 2)


def connect(url: str) -> socket.socket:
    address = httpx.URL(url)
    return socket.create_connection((address.host, address.port or 80), timeout=10)


def read_all(client: socket.socket) -> bytes:
    """What the server sends until it closes the connection."""
    return b"".join(iter(lambda: client.recv(100_000), b""))


def error_in(answer: bytes) -> str:
    """The message of a response in TensorFlow Serving's shape."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head.lower()
    (message,) = json.loads(body).values()
    return message


def test_broken_http_is_400_and_the_server_goes_on(reverser_folder: Path) -> None:
    def scenario(url: str) -> httpx.Response:
        for sent in (b"\x00\xff\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"):
            with connect(url) as client:
                client.sendall(sent)
                answer = read_all(client)
                assert answer.startswith(b"HTTP/1.1 400") and "Malformed" in error_in(answer)
        return predict(url, "a")

    assert serve_while(reverser_folder, scenario)[1].status_code == 200


@pytest.mark.parametrize("method", ["POST", "GET", "HEAD"])
def test_a_broken_body_gets_one_answer_and_leaves_no_traceback(
    reverser_folder: Path, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    head = f"{method} /v1/models/none HTTP/1.1\r\nHost: localhost\r\n"

    def scenario(url: str) -> bytes:
        with connect(url) as client:
            client.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n".encode())
            return read_all(client)

    answer = serve_while(reverser_folder, scenario)[1]
    assert answer.startswith(b"HTTP/1.1 400") and answer.count(b"HTTP/1.1") == 1
    assert answer.endswith(b"\r\n\r\n") == (method == "HEAD")
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("host", ["127.1", "localhost", "::ffff:127.0.0.1"])
def test_at_a_loopback_address_however_written_other_names_are_refused(
    reverser_folder: Path, host: str
) -> None:
    def scenario(url: str) -> list[int]:
        names = ("rebound.example", host if ":" not in host else f"[{host}]")
        return [httpx.get(f"{url}metrics", headers={"Host": name}).status_code for name in names]

    assert serve_while(reverser_folder, scenario, host=host)[1] == [403, 200]


def test_a_connection_beyond_the_bound_is_told_to_come_again(
    reverser_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 2)
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def scenario(url: str) -> None:
        with connect(url), connect(url) as second:
            with connect(url) as third:
                third.sendall(request)
                answer = read_all(third)
            assert answer.startswith(b"HTTP/1.1 503") and b"retry-after: 1" in answer.lower()
            assert error_in(answer) == "2 connections are open"
            second.sendall(request)
            assert second.recv(100).startswith(b"HTTP/1.1 200")
        deadline = time.monotonic() + 10
        while httpx.get(f"{url}healthz").status_code != 200:
            assert time.monotonic() < deadline

    serve_while(reverser_folder, scenario)


def test_silent_connections_beyond_the_bound_do_not_pile_up(
    reverser_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(connections, "MOST_REFUSED", 3)

    def scenario(url: str) -> None:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(connect(url)) for _ in range(6)]
            clients[5].settimeout(5.0)  # less than the time limit of silent connections
            with contextlib.suppress(ConnectionError):
                assert clients[5].recv(1) == b""
            clients[4].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_all(clients[4]).startswith(b"HTTP/1.1 503")

    serve_while(reverser_folder, scenario)


@pytest.mark.parametrize("before", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_a_client_that_sends_its_headers_too_slowly_is_closed(
    before: bytes, reverser_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 1.0)

    def scenario(url: str) -> bytes:
        with connect(url) as client:
            if before:
                client.sendall(before)
                answer = b""
                while not answer.endswith(b'"ok"}'):  # it may come in parts
                    part = client.recv(1000)
                    assert part, answer
                    answer += part
                assert answer.startswith(b"HTTP/1.1 200")
            with contextlib.suppress(ConnectionError):
                for byte in b"GET /healthz HTTP/1.1\r\n" * 10:
                    client.sendall(bytes([byte]))
                    time.sleep(0.05)
                pytest.fail("the server waited for ten seconds")
            return read_all(client)

    _, answer = serve_while(reverser_folder, scenario)
    assert answer.startswith(b"HTTP/1.1 408") and "did not arrive in 1 s" in error_in(answer)


def test_a_client_that_sends_nothing_is_closed(
    reverser_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.1)

    def scenario(url: str) -> bytes:
        with connect(url) as client:
            return read_all(client)

    assert serve_while(reverser_folder, scenario)[1] == b""


def test_a_client_that_sends_no_second_request_is_closed(
    reverser_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "IDLE_SECONDS", 1)

    def scenario(url: str) -> bytes:
        with connect(url) as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            client.settimeout(8)  # less than the time limit for headers
            return read_all(client)

    answer = serve_while(reverser_folder, scenario)[1]
    assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b'"ok"}')


def test_a_client_that_sends_no_body_does_not_hold_up_the_end(
    reverser_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PATIENCE", 1)

    def scenario(url: str) -> socket.socket:
        client = connect(url)
        client.sendall(POST % 10)
        time.sleep(0.2)
        return client

    started = time.monotonic()
    serve_while(reverser_folder, scenario)[1].close()
    assert time.monotonic() - started < 0.8 * app.BODY_SECONDS


@pytest.mark.parametrize(
    ("limits", "expected", "calls"),
    [
        ((1024, 2048), 2048 - 256, [(2048, 2048)]),
        ((1024, 10**6), 4096, [(4352, 10**6)]),
        ((1024, resource.RLIM_INFINITY), 4096, [(4352, resource.RLIM_INFINITY)]),
        ((10**6, 10**6), 4096, []),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 4096, []),
        ((100, 200), 1, [(200, 200)]),
    ],
)
def test_as_many_connections_may_be_open_as_files(
    limits: tuple[int, int],
    expected: int,
    calls: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    assert server._max_connections() == expected
    assert raised == calls


def test_an_answer_may_take_longer_than_headers(
    reverser_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 1.0)

    def scenario(url: str) -> httpx.Response:
        threading.Timer(1.5, Gate(monkeypatch).open).start()
        return predict(url, "a")

    assert serve_while(reverser_folder, scenario)[1].status_code == 200


def test_a_client_that_does_not_take_its_answer_is_closed(
    reverser_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SEND_SECONDS", 0.2)
    body = json.dumps({"instances": ["a" * 5000] * 2000}).encode()
    aborted = threading.Event()
    lost = connections.Connection.connection_lost

    def connection_lost(self: connections.Connection, error: Exception | None) -> None:
        aborted.set()
        lost(self, error)

    monkeypatch.setattr(connections.Connection, "connection_lost", connection_lost)

    def scenario(url: str) -> None:
        with connect(url) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(POST % len(body) + body)
            assert aborted.wait(20)

    options = {"max_body_bytes": 20_000_000, "max_queue": 2000}
    figures, _ = serve_while(reverser_folder, scenario, **options)
    assert figures["rows"] == 2000  # the answer was not an error


def test_a_client_that_takes_its_answer_slowly_gets_all_of_it(
    reverser_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SEND_SECONDS", 1.0)
    body = json.dumps({"instances": ["a" * 5000] * 2000}).encode()

    def scenario(url: str) -> int:
        parts = []
        with connect(url) as client:
            client.settimeout(60)
            client.sendall(
                POST.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) % len(body) + body
            )
            while part := client.recv(1_000_000):
                parts.append(part)
                time.sleep(0.2)
        answer = b"".join(parts).partition(b"\r\n\r\n")[2]
        return len(json.loads(answer)["predictions"])

    options = {"max_body_bytes": 20_000_000, "max_queue": 2000}
    assert serve_while(reverser_folder, scenario, **options)[1] == 2000


def test_the_token_comes_from_a_file(reverser_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    status = "v1/models/reverser"

    def scenario(url: str) -> list[int]:
        headers: list[dict[str, str]] = [{}, {"Authorization": "Bearer secret"}]
        return [httpx.get(url + status, headers=one).status_code for one in headers]

    _, codes = serve_while(reverser_folder, scenario, token_file=str(file))
    assert codes == [401, 200]
    for content, count in ((" \n", 0), ("# mine\nsecret\n", 2)):
        file.write_text(content)
        with pytest.raises(ValueError, match=f"expected one line, the token; found {count}"):
            serve({"m": reverser_folder}, ServerOptions(token_file=str(file)), print)
    file.write_bytes(b"s\xe9cret\n")
    with pytest.raises(ValueError, match=f"{file}: line 1: expected UTF-8, got byte 0xe9"):
        serve({"m": reverser_folder}, ServerOptions(token_file=str(file)), print)


def test_requests_are_logged_only_on_demand_and_without_their_texts(
    reverser_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    serve_while(reverser_folder, lambda url: predict(url, "secret", "@"))
    assert "predict" not in capsys.readouterr().err
    serve_while(reverser_folder, lambda url: predict(url, "secret", "@"), access_log=True)
    logged = capsys.readouterr().err
    assert [line for line in logged.splitlines() if "predict" in line and "400" in line]
    assert "secret" not in logged


def test_a_port_in_use_is_an_error_that_names_it(reverser_folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"127.0.0.1:{port}"):
            serve({"m": reverser_folder}, ServerOptions(port=port), print)


@pytest.mark.parametrize("name", ["", "a/b", "a:predict", "a b"])
def test_a_name_that_would_need_quoting_is_an_error(reverser_folder: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"model's name .* --export_dir=NAME=DIR"):
        serve({name: reverser_folder}, ServerOptions(), print)


def test_where_one_model_fails_at_the_start_the_others_are_closed(
    reverser_folder: Path, tmp_path: Path
) -> None:
    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="expected a folder of a version"):
        serve({"a": reverser_folder, "b": tmp_path}, ServerOptions(port=0), print)
    assert not set(threading.enumerate()) - before


@pytest.mark.parametrize(
    "options",
    [
        {"port": 70_000},
        {"max_batch": 0},
        {"poll_seconds": 0.0},
        {"poll_seconds": 1e12},
        {"max_wait_ms": -1.0},
    ],
)
def test_options_out_of_range_are_errors(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        ServerOptions(**options)

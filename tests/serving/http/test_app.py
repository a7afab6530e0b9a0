import asyncio
import json
import shutil
import string
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.protobuf import json_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2

from seq2seq_memattn.serving import service
from seq2seq_memattn.serving.http import app as app_module
from seq2seq_memattn.serving.options import ServerOptions
from tests.errors import refused
from tests.serving.clients import BODY_BYTES, Running, running
from tests.serving.gate import Gate
from tests.serving.tiny_models import export_reverser

REVERSER = "/v1/models/reverser"
PREDICT = f"{REVERSER}:predict"
HALF = "/v1/models/half_plus_two"


@pytest.fixture(scope="module")
def server(reverser_folder: Path, half_plus_two_folder: Path) -> Iterator[Running]:
    before = set(threading.enumerate())
    folders = {"reverser": reverser_folder, "half_plus_two": half_plus_two_folder}
    with running(folders, max_batch=8, max_queue=40, max_text_bytes=200) as found:
        yield found
    assert not set(threading.enumerate()) - before


def error_of(response: httpx.Response) -> str:
    assert response.headers["content-type"] == "application/json"
    assert response.json().keys() == {"error"}
    return response.json()["error"]


def test_the_documented_example_of_numbers(server: Running) -> None:
    answer = server.post(f"{HALF}:predict", {"instances": [1.0, 2.0, 5.0]})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {"predictions": [2.5, 3.0, 4.5]}


def test_the_documented_example_of_several_inputs(server: Running) -> None:
    inputs = {
        "tag": ["foo", "bar"],
        "signal": [[1, 2, 3, 4, 5], [3, 4, 1, 2, 5]],
        "sensor": [[[1, 2], [3, 4]], [[4, 5], [6, 8]]],
    }
    body = {"signature_name": "several", "inputs": inputs}
    tags = [{"b64": "Zm9v"}, {"b64": "YmFy"}]
    columns = {"tag_bytes": tags, "total": [15, 15], "trace": [5.0, 12.0], "is_even": [False] * 2}
    assert server.post(f"{HALF}:predict", body).json() == {"outputs": columns}
    instances = [dict(zip(inputs, row, strict=True)) for row in zip(*inputs.values(), strict=True)]
    body = {"signature_name": "several", "instances": instances}
    rows = [{name: values[row] for name, values in columns.items()} for row in range(2)]
    assert server.post(f"{HALF}:predict", body).json() == {"predictions": rows}


def test_a_signature_without_batches(server: Running) -> None:
    answer = server.post(f"{HALF}:predict", {"signature_name": "countdown", "inputs": 3})
    assert answer.json() == {"outputs": [3, 2, 1]}


def test_translations_with_their_version_and_times(server: Running) -> None:
    answer = server.post(f"{REVERSER}/versions/1:predict", {"instances": ["ein Mann", "größer"]})
    first, second = answer.json()["predictions"]
    assert first == {
        "translations": ["Mann ein", "Mann ein!"],
        "log_probs": [-0.2, -0.3],
        "num_tokens": [2, 2],
        "source_is_cut": False,
    }
    assert second["translations"] == ["größer", "größer!"]
    assert answer.headers["x-model-version"] == "1"
    assert answer.headers["server-timing"].startswith("model;dur=")


def test_other_signatures(server: Running) -> None:
    body = {"signature_name": "score", "inputs": {"text": ["abc"], "translation": ["de"]}}
    assert server.post(PREDICT, body).json()["outputs"]["num_tokens"] == [5]
    answer = server.post(PREDICT, {"signature_name": "align", "inputs": ["a b"]})
    assert answer.json()["outputs"]["source_pieces"] == [["a", "b", "</s>"]]


def test_status_and_metadata_are_messages_of_tensorflow_serving(server: Running) -> None:
    for path in (REVERSER, f"{REVERSER}/versions/1"):
        status = json_format.Parse(
            server.get(path).content, get_model_status_pb2.GetModelStatusResponse()
        )
        (one,) = status.model_version_status
        assert (one.version, one.state) == (1, get_model_status_pb2.ModelVersionStatus.AVAILABLE)
    for path in (f"{REVERSER}/metadata", f"{REVERSER}/versions/1/metadata"):
        answer = server.get(path).json()
        assert answer["model_spec"]["name"] == "reverser"
        signatures = json_format.ParseDict(
            answer["metadata"]["signature_def"], get_model_metadata_pb2.SignatureDefMap()
        ).signature_def
        assert {"serving_default", "align", "score"} <= set(signatures)
        assert signatures["align"].outputs["alignments"].tensor_shape.dim[2].size == -1


@pytest.mark.parametrize(
    ("method", "path", "status", "says"),
    [
        ("GET", "/v1/models/other", 404, "Servable not found for request: Latest(other)"),
        ("GET", "/v1/models/other/metadata", 404, "Latest(other)"),
        ("POST", "/v1/models/other:predict", 404, "Latest(other)"),
        ("GET", f"{REVERSER}/versions/2", 404, "Specific(reverser, 2)"),
        ("GET", f"{REVERSER}/versions/2/metadata", 404, "Specific(reverser, 2)"),
        ("POST", f"{REVERSER}/versions/2:predict", 404, "Specific(reverser, 2)"),
        ("POST", f"{REVERSER}/versions/x:predict", 400, "whole number as version, got 'x'"),
        ("GET", f"{REVERSER}/versions/{'9' * 5000}", 400, "whole number as version"),
        ("POST", f"{REVERSER}:classify", 400, "'classify' is not served"),
        ("GET", PREDICT, 400, f"Malformed request: GET {PREDICT}"),
        ("POST", f"{REVERSER}/versions/1:regress", 400, "'regress' is not served"),
        ("POST", REVERSER, 400, "Method Not Allowed"),
        ("DELETE", PREDICT, 400, "Method Not Allowed"),
        ("GET", "/v1/models/../../etc/passwd", 404, "Malformed request"),
        ("GET", "/other", 404, "Malformed request: GET /other"),
        ("GET", "/page/other.js", 404, "Not Found"),
        ("GET", "/page/..%2fapp.py", 404, "Malformed request"),
    ],
)
def test_errors_have_the_shape_of_tensorflow_serving(
    server: Running, method: str, path: str, status: int, says: str
) -> None:
    body = {"instances": ["a"]}
    answer = server.ask(lambda client: client.request(method, path, json=body))
    assert answer.status_code == status
    assert says in error_of(answer)


def test_compressed_bodies_are_refused(server: Running) -> None:
    headers = {"Content-Encoding": "gzip"}
    answer = server.ask(lambda client: client.post(PREDICT, content=b"x", headers=headers))
    assert answer.status_code == 415 and "its Content-Encoding is gzip" in error_of(answer)
    body, headers = b'{"instances": ["a"]}', {"Content-Encoding": "Identity"}
    answer = server.ask(lambda client: client.post(PREDICT, content=body, headers=headers))
    assert answer.status_code == 200


def test_what_the_model_refuses_is_400_and_says_why(server: Running) -> None:
    answer = server.post(PREDICT, {"instances": ["a @ b", "c"]})
    assert answer.status_code == 400 and error_of(answer) == "no symbol for a @ b"


def figure(server: Running, name: str) -> float:
    """A figure of the reversing model."""
    text = server.service.metrics.format().decode()
    name = f"seq2seq_memattn_{name} "
    return float(text.partition(name)[2].split()[0]) if name in text else 0.0


def num_batches(server: Running) -> float:
    """The number of batches that the reversing model has translated."""
    return figure(server, 'batch_rows_count{model="reverser",signature="serving_default"}')


def rows_in_queue(server: Running) -> float:
    """The number of rows that wait for the reversing model."""
    return figure(server, 'queue_rows{model="reverser"}')


def test_a_wrong_text_does_not_divide_the_batch_of_others(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        gate = Gate(monkeypatch)
        first = asyncio.create_task(client.post(PREDICT, json={"instances": ["a b"]}))
        while not gate.is_reached.is_set():  # the others wait in the queue
            await asyncio.sleep(0.001)
        texts = ["a b", "b # c", "a c", "a", "b"]
        others = [
            asyncio.create_task(client.post(PREDICT, json={"instances": [text]})) for text in texts
        ]
        async with asyncio.timeout(20):
            while rows_in_queue(server) < 4:  # all but the wrong one
                await asyncio.sleep(0.001)
        gate.open()
        return await asyncio.gather(first, *others)

    before = num_batches(server)
    answers = server.ask(work)
    assert [answer.status_code for answer in answers] == [200, 200, 400, 200, 200, 200]
    assert error_of(answers[2]) == "an unknown symbol"
    assert num_batches(server) - before == 2


def test_clients_at_the_same_time_get_their_own_answers_from_shared_batches(
    server: Running,
) -> None:
    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        texts = [f"{letter} {number}" for number, letter in enumerate(string.ascii_letters[:30])]
        texts[7] = "@"
        requests = (client.post(PREDICT, json={"instances": [text]}) for text in texts)
        return await asyncio.gather(*requests)

    before = num_batches(server)
    answers = server.ask(work)
    for number, answer in enumerate(answers):
        if number == 7:
            assert answer.status_code == 400
            continue
        (one,) = answer.json()["predictions"]
        assert one["translations"][0] == f"{number} {string.ascii_letters[number]}"
    assert num_batches(server) - before <= 15


def test_a_full_queue_is_503_with_retry_after(
    reverser_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        Gate(monkeypatch).open_soon()
        body = {"instances": ["a", "b"]}
        return await asyncio.gather(*(client.post(PREDICT, json=body) for _ in range(8)))

    with running({"reverser": reverser_folder}, max_batch=2, max_queue=4) as server:
        answers = server.ask(work)
    refused = [answer for answer in answers if answer.status_code != 200]
    assert len(refused) == 6  # until the first batch is taken, the queue holds two requests
    for answer in refused:
        assert answer.status_code == 503
        assert "queue is full" in error_of(answer)
        assert int(answer.headers["retry-after"]) > 0


def test_a_long_text_is_refused_with_its_length(server: Running) -> None:
    answer = server.post(PREDICT, {"instances": ["ä" * 101]})
    assert answer.status_code == 400
    assert "at most 200 bytes; one has 202" in error_of(answer)
    assert server.post(PREDICT, {"instances": ["ä" * 100]}).status_code == 200


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_large_body_is_413(server: Running, is_announced: bool) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * BODY_BYTES

    content: Any = b" " * (BODY_BYTES + 1) if is_announced else chunks()
    answer = server.ask(lambda client: client.post(PREDICT, content=content))
    assert answer.status_code == 413
    assert f"at most {BODY_BYTES} bytes" in error_of(answer)


def test_a_body_that_does_not_come_is_408(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(60)

    monkeypatch.setattr(app_module, "BODY_SECONDS", 0.05)
    answer = server.ask(lambda client: client.post(PREDICT, content=never()))
    assert answer.status_code == 408
    assert "did not arrive" in error_of(answer)


def test_the_token_guards_all_but_the_page_and_the_health(server: Running) -> None:
    guarded = [REVERSER, f"{REVERSER}/metadata", "/metrics", "/models.json", "/other"]

    async def statuses(client: httpx.AsyncClient, header: str | None) -> set[int]:
        headers = {} if header is None else {"Authorization": header.encode()}
        found = {(await client.get(path, headers=headers)).status_code for path in guarded[:-1]}
        body = {"instances": ["a"]}
        return found | {(await client.post(PREDICT, json=body, headers=headers)).status_code}

    for header in (None, "", "Bearer", "Bearer wrong", "Basic sécret", "Bearer sécret2", "sécret"):
        found = server.ask(lambda client, h=header: statuses(client, h), token="sécret")
        assert found == {401}
    # The last byte of "à" is a no-break space in Latin-1.
    for header in ("Bearer voilà", "bearer  voilà "):
        found = server.ask(lambda client, h=header: statuses(client, h), token="voilà")
        assert found == {200}
    for path in guarded:
        answer = server.ask(lambda client, p=path: client.get(p), token="sécret")
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
        assert "token" in error_of(answer)
    health = server.ask(lambda client: client.get("/healthz"), token="sécret")
    assert health.status_code == 200
    for path, status in (("/", 200), ("/page/x", 404), ("/models.json%0A", 401)):
        answer = server.ask(lambda client, p=path: client.get(p), token="sécret")
        assert answer.status_code == status


def test_the_page_comes_from_the_package_with_safe_headers(server: Running) -> None:
    types = {
        "index.html": "text/html; charset=utf-8",
        "page.css": "text/css; charset=utf-8",
        "page.js": "text/javascript; charset=utf-8",
        "favicon.svg": "image/svg+xml",
    }
    for name, content_type in types.items():
        answer = server.get("/" if name == "index.html" else f"/page/{name}")
        assert answer.content == (app_module.PAGE / name).read_bytes()
        assert answer.headers["content-type"] == content_type
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("default-src 'self'; ")
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    for path in ("/page", "/page/", "/page/none.js", "/page/..%2fapp.py", "/page//etc/passwd"):
        assert server.get(path).status_code == 404


def test_the_page_is_told_of_the_models_in_their_order(server: Running) -> None:
    assert server.get("/models.json").json() == {
        "models": [
            {
                "name": "reverser",
                "version": 1,
                "export": {"attention": "k_memory:4", "n_best": 2},
                "signatures": ["align", "score", "serving_default"],
            },
            {
                "name": "half_plus_two",
                "version": 123,
                "export": {},
                "signatures": ["countdown", "serving_default", "several"],
            },
        ]
    }


def test_health(server: Running) -> None:
    answer = server.get("/healthz")
    assert answer.status_code == 200 and answer.json() == {"status": "ok"}


OWN, OTHERS = "127.0.0.1:8501", "rebound.example:8501"


@pytest.mark.parametrize(
    ("options", "host", "origin", "status"),
    [
        ({}, OWN, None, 200),
        ({}, "[::1]:8501", None, 200),
        ({}, "LOCALHOST", None, 200),
        ({}, OWN, f"http://{OWN}", 200),
        ({}, OTHERS, None, 403),
        ({}, OTHERS, f"http://{OTHERS}", 403),
        ({}, OWN, "http://evil.example", 403),
        ({}, OWN, "http://localhost:3000", 403),
        ({}, OWN, "null", 403),
        ({"host": "::1"}, OTHERS, None, 403),
        ({"host": "2001:DB8::5", "allowed_hosts": "a.example"}, "[2001:db8::5]:8501", None, 200),
        ({"allowed_hosts": "a.example, Rebound.example"}, OTHERS, None, 200),
        ({"allowed_hosts": "a.example"}, OWN, "https://a.example:444", 200),
        ({"allowed_hosts": "a.example"}, OWN, "https://b.example", 403),
        ({"host": "0.0.0.0"}, OTHERS, None, 200),
        ({"host": "0.0.0.0"}, OTHERS, f"https://{OTHERS}", 200),
        ({"host": "0.0.0.0"}, OTHERS, "https://evil.example", 403),
        ({"host": "0.0.0.0", "allowed_hosts": "a.example"}, OTHERS, None, 403),
    ],
)
def test_pages_of_other_sites_cannot_use_the_server(
    reverser_folder: Path, options: dict[str, Any], host: str, origin: str | None, status: int
) -> None:
    headers = {"Host": host, "Content-Type": "text/plain"} | ({"Origin": origin} if origin else {})
    with running({"reverser": reverser_folder}, **options) as server:
        answer = server.ask(
            lambda client: client.post(PREDICT, json={"instances": ["a"]}, headers=headers)
        )
        assert answer.status_code == status
        if status == 403:
            assert "see --allowed_hosts" in error_of(answer)
        health = server.ask(lambda client: client.get("/healthz", headers={"Host": OTHERS}))
        assert health.status_code == 200


@pytest.mark.parametrize("name", ["https://a.example", "a.example:443", "a.example/x", "a b"])
def test_an_allowed_host_is_a_name_alone(name: str) -> None:
    expected = f"`allowed_hosts`: expected names without scheme and port; got {name!r}."
    assert refused(ServerOptions, allowed_hosts=name) == expected


def test_a_path_with_a_slash_too_many_is_not_redirected(server: Running) -> None:
    answer = server.get("/v1/models/reverser/")
    assert answer.status_code == 400 and "Malformed request" in answer.json()["error"]


def test_more_open_requests_than_are_allowed_are_told_to_come_again(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = server.service.metrics.num_requests
    monkeypatch.setattr(app_module, "MAX_OPEN", 0)
    answer = server.post(PREDICT, {"instances": ["a"]})
    assert answer.status_code == 503 and answer.headers["Retry-After"] == "1"
    assert server.service.metrics.num_requests == requests + 1


def test_an_answer_that_is_too_large_is_refused(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_ANSWER", 3)
    answer = server.post(PREDICT, {"instances": ["a"]})
    assert answer.status_code == 400 and "values" in answer.json()["error"]


def test_metrics_count_without_names_that_clients_invent(server: Running) -> None:
    rows = server.service.metrics.num_rows
    requests = server.service.metrics.num_requests
    server.post(PREDICT, {"instances": ["a", "b", "c"]})
    server.post("/v1/models/invented:predict", {"instances": ["a"]})
    server.post(PREDICT, {"signature_name": "invented", "instances": ["a"]})
    assert server.service.metrics.num_rows == rows + 3
    assert server.service.metrics.num_requests == requests + 3
    answer = server.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = answer.text
    assert "invented" not in text
    labels = 'model="reverser",signature="serving_default"'
    for name in ("request_seconds_count", "model_seconds_count", "batch_rows_count", "rows_total"):
        assert f"seq2seq_memattn_{name}{{{labels}}} " in text
    assert 'seq2seq_memattn_requests_total{code="404",model="",signature=""} ' in text
    assert 'seq2seq_memattn_queue_rows{model="reverser"} 0.0' in text
    assert 'seq2seq_memattn_version{model="reverser"} 1.0' in text


def test_a_version_is_replaced_under_load_without_a_failed_request(
    reverser_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "reverser"
    shutil.copytree(reverser_folder, folder)

    async def client_loop(client: httpx.AsyncClient, seen: list[str]) -> None:
        while seen.count("2") < 20:
            answer = await client.post(PREDICT, json={"instances": ["a b"]})
            assert answer.status_code == 200, answer.text
            version = answer.headers["x-model-version"]
            prefix = "new " if version == "2" else ""
            (one,) = answer.json()["predictions"]
            assert one["translations"][0] == f"{prefix}b a"
            seen.append(version)

    async def work(client: httpx.AsyncClient) -> list[str]:
        seen: list[str] = []
        clients = [asyncio.create_task(client_loop(client, seen)) for _ in range(8)]
        await asyncio.to_thread(export_reverser, folder, 2, "new ")
        await asyncio.gather(*clients)
        return seen

    with running({"reverser": folder}, poll_seconds=0.05) as server:
        seen = server.ask(work)
        assert set(seen) == {"1", "2"} and seen == sorted(seen)
        status = server.get(REVERSER).json()["model_version_status"]
        assert [(one["version"], one["state"]) for one in status][0] == ("2", "AVAILABLE")


TEXTS = st.text(st.characters(), max_size=220)  # including lone surrogates
BODIES = (
    st.binary(max_size=100)
    | st.builds(
        lambda text, key: json.dumps({key: [text]}).encode(),
        TEXTS,
        st.sampled_from(["instances", "inputs"]),
    )
    | st.builds(
        lambda byte: json.dumps({"instances": ["%"]}).encode().replace(b"%", bytes([byte])),
        st.integers(0, 255),
    )
)


def check_hostile_bodies(server: Running, bodies: list[bytes]) -> None:
    """Asserts that each body gets an answer or a clear error, and another client its answer."""

    async def work(client: httpx.AsyncClient) -> None:
        hostile = [client.post(PREDICT, content=body) for body in bodies]
        polite = client.post(PREDICT, json={"instances": ["a b"]})
        *answers, own = await asyncio.gather(*hostile, polite)
        assert own.json()["predictions"][0]["translations"] == ["b a", "b a!"]
        for body, answer in zip(bodies, answers, strict=True):
            if answer.status_code != 200:
                assert answer.status_code in (400, 404)
                assert error_of(answer)
                continue
            (text,) = next(iter(json.loads(body).values()))
            found = answer.json()
            best = (
                found["predictions"][0]["translations"][0]
                if "predictions" in found
                else found["outputs"]["translations"][0][0]
            )
            # Like `Reverser`: only ASCII white space separates words, so bytes are split.
            words = text.encode().split()
            assert best == b" ".join(reversed(words)).decode()

    server.ask(work)


def test_every_byte_in_a_body_is_answered_or_refused(server: Running) -> None:
    for first in range(0, 256, 16):
        bodies = [b'{"instances": ["a %c b"]}' % byte for byte in range(first, first + 16)]
        check_hostile_bodies(server, bodies)


@settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(BODIES, min_size=3, max_size=6))
def test_hostile_bodies_are_answered_or_refused(server: Running, bodies: list[bytes]) -> None:
    check_hostile_bodies(server, bodies)


@pytest.mark.slow
@settings(max_examples=600, deadline=None, database=None, derandomize=True)
@given(st.lists(BODIES, min_size=3, max_size=6))
def test_many_hostile_bodies_are_answered_or_refused(server: Running, bodies: list[bytes]) -> None:
    check_hostile_bodies(server, bodies)


def test_the_options_of_batches_reach_the_batcher(
    reverser_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    class Noted(service.Batcher):
        def __init__(self, *options: Any) -> None:
            made.append(options[:4])
            super().__init__(*options)

    monkeypatch.setattr(service, "Batcher", Noted)
    options = {"max_batch": 3, "max_wait_ms": 250.0, "max_queue": 9, "parallel_batches": 2}
    with running({"reverser": reverser_folder}, **options):
        assert made == [(3, 0.25, 9, 2)]

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from seq2seq_memattn.commands.serve import export_folders
from seq2seq_memattn.serving import server
from tests.running import ROOT, error_lines, run_here
from tests.serving.tiny_models import export_reverser

COMMAND = ("-m", "experiments.serve")


def test_names_of_models_are_those_of_their_folders_unless_given(tmp_path: Path) -> None:
    folders = export_folders([f"{tmp_path}/first", f"second={tmp_path}/first", "a=b=c"])
    assert folders == {
        "first": tmp_path / "first",
        "second": tmp_path / "first",
        "a": Path("b=c"),
    }
    with pytest.raises(ValueError, match="two models are named 'first'"):
        export_folders(["x/first", "y/first/"])


def test_it_answers_until_it_is_told_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_reverser(tmp_path / "reverser", 1)
    answers = []

    def ask(url: str) -> None:
        body = {"instances": ["a b"]}
        try:
            answers.append(httpx.post(f"{url}v1/models/reverser:predict", json=body, timeout=30))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    serve = server.serve
    with ThreadPoolExecutor(1) as client:

        def serve_a_client(folders: Any, options: Any, say: Callable[[str], None]) -> Any:
            return serve(folders, options, lambda url: (say(url), client.submit(ask, url)))

        monkeypatch.setattr(server, "serve", serve_a_client)
        done = run_here("experiments.serve", "--port=0", f"--export_dir={tmp_path}/reverser")
    assert done.returncode == 0
    assert b"serving at http://" in done.stderr
    assert answers[0].json()["predictions"][0]["translations"][0] == "b a"
    figures = json.loads(done.stdout)
    assert figures["requests"] == 1 and figures["rows"] == 1


@contextlib.contextmanager
def started(*flags: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A server's process and URL, once it is ready; it is killed at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, *COMMAND, "--port=0", *flags],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        ready = (line for line in process.stderr if line.startswith("serving at "))
        yield process, next(ready).split()[-1]
    finally:
        process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_status_0_when_it_has_answered(
    tmp_path: Path, number: signal.Signals
) -> None:
    export_reverser(tmp_path / "first", 1)
    exports = (f"--export_dir={name}{tmp_path}/first" for name in ("", "b="))
    with started(*exports) as (process, url):
        body = b'{"instances": ["sleepy one"]}'
        address = httpx.URL(url).netloc.decode()
        with contextlib.closing(http.client.HTTPConnection(address, timeout=60)) as client:
            client.putrequest("POST", "/v1/models/b:predict")
            client.putheader("Content-Length", str(len(body)))
            client.putheader("Expect", "100-continue")
            client.endheaders()
            assert b"100" in client.sock.recv(100)  # the server waits for the body
            process.send_signal(number)
            client.send(body)
            answer = json.load(client.getresponse())
        assert answer["predictions"][0]["translations"][0] == "one sleepy"
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    figures = json.loads(stdout)
    assert figures["requests"] == 1 and figures["rows"] == 1
    assert "error" not in stderr and "Traceback" not in stderr


def test_what_cannot_be_served_is_one_line_and_status_1(tmp_path: Path) -> None:
    version = export_reverser(tmp_path / "sound", 1)
    damaged = tmp_path / "damaged" / "1"
    damaged.mkdir(parents=True)
    (damaged / "saved_model.pb").write_bytes((version / "saved_model.pb").read_bytes())
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        cases = {
            f"--export_dir={damaged.parent}": "the model cannot be loaded",
            f"--export_dir={tmp_path}/missing": "missing: No such file or directory",
            f"--export_dir={tmp_path}/sound|--port={port}": f":{port}: Address already in use",
        }
        for flags, says in cases.items():
            done = run_here("experiments.serve", "--port=0", *flags.split("|"))
            assert done.returncode == 1
            (line,) = error_lines(done)
            assert says in line
            assert b"Traceback" not in done.stderr and done.stdout == b""

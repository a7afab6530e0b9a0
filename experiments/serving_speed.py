"""Measures serving: python -m experiments.serving_speed --runs=R,R --input=F --output=F.json.

Each run is exported and served on this machine. wrk, the load generator, plays so many clients that
each send a sentence, wait for the answer, and send the next; the rows beside are of one client and
single sentences, over HTTP and without it, and of all sentences decoded as a file. Sentences go in
the order of the file, again and again.
"""

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from experiments import cli
from experiments.process_memory import process_tree_mib
from experiments.records import processor, provenance, write_json
from seq2seq_memattn.data.text_files import check_output, read_lines

LOAD_SCRIPT = Path(__file__).with_name("load.lua")
READY = "serving at "
WARM_UP = 20  # requests before single ones are timed
FILE_BATCH = 100  # sentences, as `translate` takes them


class Server(NamedTuple):
    """A server on this machine.

    Fields:
        address: host and port.
        pid: of its process.
    """

    address: str
    pid: int


@contextlib.contextmanager
def serving(export_dir: Path) -> Iterator[Server]:
    """Serves the models of a folder by their folder's name until the block ends."""
    command = [sys.executable, "-m", "experiments.serve", "--port=0", f"--export_dir={export_dir}"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            lines = process.stderr or ()
            ready = next((line for line in lines if line.startswith(READY)), None)
            if ready is None:
                raise ValueError(f"{' '.join(command)}: ended with {process.wait()}")
            yield Server(ready.split("//")[-1].strip().rstrip("/"), process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()


def measure_load(
    wrk: str, server: Server, path: str, bodies: Path, clients: int, seconds: int
) -> dict[str, Any]:
    """Latencies in ms and answers per second with so many clients at once."""
    command = [
        *(wrk, "--threads=1", f"--connections={clients}", f"--duration={seconds}s"),
        *(
            "--timeout=60s",
            "--latency",
            f"--script={LOAD_SCRIPT}",
            f"http://{server.address}{path}",
        ),
    ]
    before = process_tree_mib(server.pid)
    process = subprocess.run(
        command,
        env={**os.environ, "BODIES": str(bodies)},
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise ValueError(f"{wrk}: ended with {process.returncode}: {process.stderr}")
    found = json.loads(process.stdout.splitlines()[-1])
    return {
        "clients": clients,
        "requests": round(found["requests"]),
        "errors": round(found["errors"]),
        "seconds": found["seconds"],
        "sentences_per_second": round(found["requests"] / found["seconds"], 2),
        **{name: round(found[name], 1) for name in ("p50_ms", "p95_ms", "p99_ms")},
        "memory_mib": [round(before), round(process_tree_mib(server.pid))],
    }


def time_requests(server: Server, path: str, bodies: Sequence[bytes]) -> dict[str, float]:
    """Latencies of requests that one client sends one after the other."""
    connection = http.client.HTTPConnection(server.address)

    def ask(body: bytes) -> None:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        if response.status != http.client.OK:
            raise ValueError(f"{path}: {answer.decode()}")

    return _percentiles(ask, bodies)


def time_calls(export_dir: Path, lines: Sequence[str]) -> dict[str, float]:
    """Latencies of calls of a SavedModel in this process."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  its operations

    (version,) = (path for path in export_dir.iterdir() if path.name.isdigit())
    function = tf.saved_model.load(str(version)).signatures["serving_default"]

    def ask(line: str) -> None:
        function(text=tf.constant([line]))["translations"].numpy()

    return _percentiles(ask, lines)


def time_file(run_dir: Path, lines: Sequence[str]) -> float:
    """Sentences a second when they are decoded as a file, XLA's compilation apart."""
    from seq2seq_memattn.training.run_directory import load_run
    from seq2seq_memattn.translator import Translator

    translate = Translator(load_run(run_dir))
    translate(lines, FILE_BATCH)
    started = time.perf_counter()
    translate(lines, FILE_BATCH)
    return round(len(lines) / (time.perf_counter() - started), 2)


def _percentiles(ask: Callable[[Any], None], questions: Sequence[Any]) -> dict[str, float]:
    times = []
    for question in (*questions[:WARM_UP], *questions):
        started = time.perf_counter()
        ask(question)
        times.append(1000 * (time.perf_counter() - started))
    p50, p95 = np.percentile(times[WARM_UP:], [50, 95])
    return {"p50_ms": round(float(p50), 2), "p95_ms": round(float(p95), 2)}


def export(run_dir: Path, export_dir: Path, beam_size: int) -> None:
    """Exports a run as a user does."""
    command = [
        *(sys.executable, "-m", "experiments.export", f"--run_dir={run_dir}"),
        *(f"--export_dir={export_dir}", f"--beam_size={beam_size}"),
        f"--n_best={min(beam_size, 5)}",
    ]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise ValueError(f"{run_dir}: {process.stderr.splitlines()[-1]}")


def measure(run_dir: Path, lines: Sequence[str], folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of one run."""
    options = flags.FLAGS
    model = run_dir.resolve().name
    bodies = [json.dumps({"instances": [{"text": line}]}).encode() for line in lines]
    (folder / "bodies").write_bytes(b"\n".join(bodies) + b"\n")
    path = f"/v1/models/{model}:predict"
    for beam_size in (10, 1):
        export_dir = folder / f"beam_{beam_size}" / model
        export(run_dir, export_dir, beam_size)
        row = {"model": model, "beam_size": beam_size}
        singles = bodies[: options.singles]
        with serving(export_dir) as server:
            yield {**row, "mode": "single, HTTP", **time_requests(server, path, singles)}
            if beam_size > 1:
                for clients in cli.positive_numbers("clients", options.clients):
                    found = measure_load(
                        options.wrk, server, path, folder / "bodies", clients, options.seconds
                    )
                    yield {**row, "mode": "load", **found}
        direct = time_calls(export_dir, lines[: options.singles])
        yield {**row, "mode": "single, SavedModel", **direct}
    found = {"sentences_per_second": time_file(run_dir, lines)}
    yield {"model": model, "beam_size": 10, "mode": "file", **found}


def main(arguments: list[str]) -> None:
    """Measures from flags."""
    del arguments
    options = flags.FLAGS
    check_output(options.output)
    if shutil.which(options.wrk) is None:
        raise ValueError(f"--wrk: expected the load generator wrk; there is no {options.wrk}")
    lines = read_lines(options.input)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for run_dir in options.runs:
            place = Path(folder) / Path(run_dir).name
            place.mkdir()
            for row in measure(Path(run_dir), lines, place):
                cli.print_note(json.dumps(row))
                rows.append(row)
    write_json(Path(options.output), {"rows": rows, **provenance(processor())})
    cli.print_result({"rows": len(rows), "output": options.output})


if __name__ == "__main__":
    flags.DEFINE_list("runs", None, "run directories", required=True)
    flags.DEFINE_string("input", None, "sentences, one per line", required=True)
    flags.DEFINE_string("output", None, "where the figures go, as JSON", required=True)
    flags.DEFINE_list("clients", ["1", "8", "64"], "clients at once")
    flags.DEFINE_integer("seconds", 60, "that each number of clients sends", lower_bound=1)
    flags.DEFINE_integer("singles", 200, "sentences that are timed singly", lower_bound=1)
    flags.DEFINE_string("wrk", "wrk", "the load generator")
    cli.run(main)

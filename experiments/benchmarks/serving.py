"""Measures serving: python -m experiments.benchmarks.serving --runs=R,R --input=F --output=F.

Each run is exported with each of the `--precisions` and served on this machine. The load generator
wrk simulates clients. Each client sends a sentence, waits for the answer and sends the next one;
the file is repeated. Latencies and sentences per second are measured for each number of
`--clients`. With the last number, they are also measured while another version of the model is
exported, and while versions replace each other. The server's memory is measured after each
replacement.
Further rows time sentences of `--tokens` tokens one at a time, over HTTP and without HTTP in turns.
For the last row, the run translates all sentences as one file in float32. These translations are
compared with those of the exported model, which runs in a separate process.
"""

import contextlib
import http.client
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.benchmarks.process_memory import process_tree_mib
from experiments.reproduction.results import provenance, write_json
from seq2seq_memattn.commands.shared import cli
from seq2seq_memattn.compute.hardware import processor
from seq2seq_memattn.notes import print_note
from seq2seq_memattn.serving.layout import version_folders
from seq2seq_memattn.text.files import check_output, read_lines

LOAD_SCRIPT = Path(__file__).with_name("load.lua")
READY = "serving at "
SAVED_MODEL_CLIENT = Path(__file__).parents[1] / "clients" / "saved_model_client.py"
WARM_UP = 20  # requests before single requests are timed
FILE_BATCH = 100  # sentences in a batch, the default of `translate`
BEAM_SIZES = (10, 1)
NEAR = 1e-4  # nats; hypotheses with a smaller difference count as equally good
SECONDS_PER_VERSION = 15  # while versions are replaced under load
LONGEST_LOAD = 300  # seconds after which a version counts as failed
NUM_BEST = 5  # translations of each sentence, the default of `export`


class Server(NamedTuple):
    """A server on this machine.

    Fields:
        address: host and port.
        pid: id of the server's process.
    """

    address: str
    pid: int


@contextlib.contextmanager
def serving(export_dir: Path, *options: str) -> Iterator[Server]:
    """Serves the model of a folder, under the folder's name, until the block ends."""
    command = [sys.executable, "-m", "experiments.serve", "--port=0", f"--export_dir={export_dir}"]
    command += options
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
    """Latencies in ms and answers per second, with `clients` clients at a time."""
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


def requester(server: Server, path: str) -> Callable[[str], None]:
    """Returns a function that has a server translate a line, over one connection."""
    connection = http.client.HTTPConnection(server.address)

    def answer_of(line: str) -> http.client.HTTPResponse:
        connection.request("POST", path, _body(line), {"Content-Type": "application/json"})
        return connection.getresponse()

    def ask(line: str) -> None:
        try:
            response = answer_of(line)
        except ConnectionError:  # the server has closed an idle connection
            connection.close()
            response = answer_of(line)
        answer = response.read()
        if response.status != http.client.OK:
            raise ValueError(f"{path}: {answer.decode()}")

    return ask


def caller(export_dir: Path) -> Callable[[str], None]:
    """Returns a function that translates a line with a SavedModel in this process."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers the model's operations

    function = tf.saved_model.load(str(export_dir / "1")).signatures["serving_default"]

    def ask(line: str) -> None:
        function(text=tf.constant([line]))["translations"].numpy()

    return ask


def time_singles(
    over_http: Callable[[str], None], direct: Callable[[str], None], lines: Sequence[str]
) -> tuple[dict[str, float], dict[str, float]]:
    """Times lines one after the other, each over HTTP and directly, in alternating order.

    Returns:
        Percentiles over HTTP, with `overhead_ms`, the median difference from a direct call for the
        same line; and percentiles of direct calls.
    """
    times = np.zeros([2, len(lines)])
    for line in lines[:WARM_UP]:
        over_http(line)
        direct(line)
    for number, line in enumerate(lines):
        ways = ((0, over_http), (1, direct))
        for way, ask in ways[:: 1 - 2 * (number % 2)]:  # alternates which way is first
            started = time.perf_counter()
            ask(line)
            times[way, number] = 1000 * (time.perf_counter() - started)
    asked, called = times
    overhead = round(float(np.median(asked - called)), 2)
    return {**_percentiles(asked), "overhead_ms": overhead}, _percentiles(called)


def compare_file(run_dir: Path, export_dir: Path, lines: Sequence[str]) -> dict[str, Any]:
    """Translates all sentences as one file, twice; compares the result with the exported model's.

    Returns:
        sentences_per_second: speed of the second pass, without XLA's compilation.
        different: number of translations that differ from those of the exported model.
        near_ties: number of these whose best two hypotheses have equal scores up to rounding.
    """
    from seq2seq_memattn.runs.directory import load_run
    from seq2seq_memattn.runs.translator import Translator
    from seq2seq_memattn.search.options import SearchOptions

    translate = Translator(load_run(run_dir), SearchOptions(n_best=NUM_BEST))
    translate(lines, FILE_BATCH)
    started = time.perf_counter()
    found = translate(lines, FILE_BATCH)
    seconds = time.perf_counter() - started
    process = subprocess.run(
        [sys.executable, str(SAVED_MODEL_CLIENT), str(export_dir / "1")],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
    )
    exported = process.stdout.split("\n")[:-1]
    different = [best for best, text in zip(found, exported, strict=True) if best[0].text != text]
    return {
        "sentences": len(lines),
        "sentences_per_second": round(len(lines) / seconds, 2),
        "different": len(different),
        "near_ties": sum(_margin(best) < NEAR for best in different),
    }


def _margin(best: Sequence[Any]) -> float:
    """The difference between the best two hypotheses in nats."""
    first, second, *_ = (translation.hypothesis.log_prob for translation in best)
    return float(first - second)


def _percentiles(times: np.ndarray) -> dict[str, float]:
    p50, p95 = np.percentile(times, [50, 95])
    return {"p50_ms": round(float(p50), 2), "p95_ms": round(float(p95), 2)}


def export(run_dir: Path, export_dir: Path, beam_size: int, precision: str) -> None:
    """Exports a run with the command that users type."""
    command = [
        *(sys.executable, "-m", "experiments.export", f"--run_dir={run_dir}"),
        *(f"--export_dir={export_dir}", f"--beam_size={beam_size}"),
        *(f"--n_best={min(beam_size, NUM_BEST)}", f"--precision={precision}"),
    ]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise ValueError(f"{run_dir}: {process.stderr.splitlines()[-1]}")


def of_length(run_dir: Path, lines: Sequence[str], num_tokens: int, count: int) -> list[str]:
    """Returns `count` sentences of `num_tokens` tokens, end token included, with repetitions."""
    from seq2seq_memattn.data.manifest import read_manifest
    from seq2seq_memattn.vocabulary import vocabulary_from_dict

    manifest = read_manifest(run_dir, check_files=False)
    vocabulary = vocabulary_from_dict(manifest.source_vocabulary, run_dir)
    found = [line for line in lines if len(vocabulary.encode(line)) + 1 == num_tokens]
    if not found:
        raise ValueError(f"--tokens: the input has no sentence of {num_tokens} tokens")
    return list(itertools.islice(itertools.cycle(found), count))


class Measurement:
    """The measurements of one run with one precision.

    Args:
        run_dir: Path.
        precision: precision of the export.
        lines: all sentences.
        folder: folder for exports and request bodies.
        arguments: arguments of the command.
    """

    def __init__(
        self,
        run_dir: Path,
        precision: str,
        lines: Sequence[str],
        folder: Path,
        arguments: cli.Arguments,
    ) -> None:
        self._run_dir = run_dir
        self._precision = precision
        self._lines = lines
        self._name = run_dir.resolve().name
        self._path = f"/v1/models/{self._name}:predict"
        self._exports = {size: folder / f"beam_{size}" / self._name for size in BEAM_SIZES}
        self._bodies = folder / "bodies"
        self._bodies.write_bytes(b"".join(_body(line) + b"\n" for line in lines))
        self._arguments = arguments
        self._singles = of_length(run_dir, lines, arguments.tokens, arguments.singles)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields each row when it has been measured."""
        for beam_size, export_dir in self._exports.items():
            self._export(beam_size)
            row = {**self._model(), "beam_size": beam_size}
            with serving(export_dir) as server:
                over_http, direct = time_singles(
                    requester(server, self._path), caller(export_dir), self._singles
                )
                if beam_size == BEAM_SIZES[0]:
                    for found in self._loads(server):
                        yield {**row, "mode": "load", **found}
            yield {**row, "mode": "single, HTTP", **over_http}
            yield {**row, "mode": "single, SavedModel", **direct}
        beam_size = BEAM_SIZES[0]
        found = compare_file(self._run_dir, self._exports[beam_size], self._lines)
        yield {**self._model(), "beam_size": beam_size, "mode": "file", **found}

    def _model(self) -> dict[str, str]:
        return {"model": self._name, "precision": self._precision}

    def _export(self, beam_size: int) -> None:
        export(self._run_dir, self._exports[beam_size], beam_size, self._precision)

    def _loads(self, server: Server) -> Iterator[dict[str, Any]]:
        """Measures load by number of clients; for the last, also during export and replacements."""
        numbers = cli.positive_numbers("clients", self._arguments.clients)
        for clients in numbers:
            yield self._load(server, clients)
        with ThreadPoolExecutor(1) as threads:
            exported = threads.submit(self._export, BEAM_SIZES[0])
            found = self._load(server, numbers[-1])
            exported.result()  # raises what the export raised
        yield {**found, "version_at_end": self._version(server)}
        yield {**self._replacements(server, numbers[-1]), "version_at_end": self._version(server)}

    def _replacements(self, server: Server, clients: int) -> dict[str, Any]:
        """Measures load while copies of version 1 become new versions, and memory after each."""
        export_dir, count = self._exports[BEAM_SIZES[0]], self._arguments.replacements
        first, memory = max(version_folders(export_dir)) + 1, []
        with ThreadPoolExecutor(1) as threads:
            load = threads.submit(self._load, server, clients, count * SECONDS_PER_VERSION)
            for version in range(first, first + count):
                due = time.perf_counter() + SECONDS_PER_VERSION
                making = export_dir / f".{version}.tmp"
                shutil.copytree(export_dir / "1", making)
                making.rename(export_dir / str(version))
                while self._version(server) < version or time.perf_counter() < due:
                    if time.perf_counter() > due + LONGEST_LOAD:
                        raise RuntimeError(f"version {version} was not loaded")
                    time.sleep(0.5)
                memory.append(round(process_tree_mib(server.pid)))
            return {**load.result(), "replacements": count, "memory_mib": memory}

    def _load(self, server: Server, clients: int, seconds: int = 0) -> dict[str, Any]:
        wrk, seconds = self._arguments.wrk, seconds or self._arguments.seconds
        return measure_load(wrk, server, self._path, self._bodies, clients, seconds)

    def _version(self, server: Server) -> int:
        """The newest version that the server serves."""
        with urllib.request.urlopen(f"http://{server.address}/v1/models/{self._name}") as response:
            statuses = json.load(response)["model_version_status"]
        return max(int(one["version"]) for one in statuses if one["state"] == "AVAILABLE")


def _body(line: str) -> bytes:
    return json.dumps({"instances": [{"text": line}]}).encode()


def define(flags: cli.Flags) -> None:
    """The flags of this command."""
    flags.items("runs", None, "run directories", required=True)
    flags.items("precisions", ["float32"], "precisions of the exports; see `memattn export`")
    flags.string("input", None, "sentences, one per line", required=True)
    flags.string("output", None, "JSON file for the figures", required=True)
    flags.items(
        "clients",
        ["1", "8", "64", "64", "64"],
        "clients at once; the same number again shows whether the server's memory grows",
    )
    flags.integer("seconds", 60, "seconds of load for each number of clients", lower_bound=1)
    flags.integer("replacements", 10, "versions that replace each other under load", lower_bound=1)
    flags.integer("singles", 200, "sentences to time one at a time", lower_bound=1)
    flags.integer(
        "tokens", 20, "length of the sentences of --singles, end token included", lower_bound=1
    )
    flags.string("wrk", "wrk", "the load generator")


def main(arguments: cli.Arguments) -> None:
    """Measures the runs that the flags name."""
    check_output(arguments.output)
    if shutil.which(arguments.wrk) is None:
        raise ValueError(f"--wrk: expected the load generator wrk; there is no {arguments.wrk}")
    lines = read_lines(arguments.input)
    origin, rows = provenance(processor()), []
    with tempfile.TemporaryDirectory() as folder:
        for run_dir, precision in itertools.product(arguments.runs, arguments.precisions):
            place = Path(tempfile.mkdtemp(dir=folder))
            for row in Measurement(Path(run_dir), precision, lines, place, arguments).rows():
                print_note(json.dumps(row))
                rows.append(row)
                write_json(Path(arguments.output), {"rows": rows, **origin})
    cli.print_result({"rows": len(rows), "output": arguments.output})


if __name__ == "__main__":
    cli.launch(sys.modules[__name__])

"""Metrics of a server in Prometheus's format."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

PREFIX = "seq2seq_memattn"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"  # of `generate_latest`

# Bucket bounds in seconds: from greedy search of a short sentence to a batch of long ones.
SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Counts and times of one server, in its own registry."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            f"{PREFIX}_requests",
            "Prediction requests by status code.",
            ["model", "signature", "code"],
            registry=self._registry,
        )
        self._rows = Counter(
            f"{PREFIX}_rows",
            "Rows answered.",
            ["model", "signature"],
            registry=self._registry,
        )
        self._request_seconds = Histogram(
            f"{PREFIX}_request_seconds",
            "Time from a request's headers to its answer.",
            ["model", "signature"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._model_seconds = Histogram(
            f"{PREFIX}_model_seconds",
            "Time of a batch in the model.",
            ["model", "signature"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._batch_rows = Histogram(
            f"{PREFIX}_batch_rows",
            "Rows in a batch.",
            ["model", "signature"],
            buckets=ROWS,
            registry=self._registry,
        )
        self._queue_rows = Gauge(
            f"{PREFIX}_queue_rows", "Rows waiting.", ["model"], registry=self._registry
        )
        self._versions = Gauge(
            f"{PREFIX}_version",
            "Version being served.",
            ["model"],
            registry=self._registry,
        )

    def watch(self, model: str, num_waiting: Callable[[], int], version: Callable[[], int]) -> None:
        """Registers functions that give the values of a model's gauges."""
        self._queue_rows.labels(model).set_function(num_waiting)
        self._versions.labels(model).set_function(version)

    def request_done(
        self, model: str, signature: str, code: int, num_rows: int, seconds: float
    ) -> None:
        """Counts a request; unknown names must be given as "", or clients could invent labels."""
        self._requests.labels(model, signature, str(code)).inc()
        self._request_seconds.labels(model, signature).observe(seconds)
        if code == 200:
            self._rows.labels(model, signature).inc(num_rows)

    def batch_done(self, model: str, signature: str, num_rows: int, seconds: float) -> None:
        """Counts a batch."""
        self._batch_rows.labels(model, signature).observe(num_rows)
        self._model_seconds.labels(model, signature).observe(seconds)

    @property
    def num_requests(self) -> int:
        """The number of requests so far that reached the service, answered or refused."""
        return _total(self._requests)

    @property
    def num_rows(self) -> int:
        """The number of rows answered so far."""
        return _total(self._rows)

    def format(self) -> bytes:
        """All metrics as text."""
        return generate_latest(self._registry)


def _total(counter: Counter) -> int:
    samples = (sample for family in counter.collect() for sample in family.samples)
    return int(sum(sample.value for sample in samples if sample.name.endswith("_total")))

"""The service: the models of a server and their answers, independent of connections and paths."""

import asyncio
import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from seq2seq_memattn.serving.errors import RequestError, invalid, not_found
from seq2seq_memattn.serving.metrics import Metrics
from seq2seq_memattn.serving.models.batch_items import Answer
from seq2seq_memattn.serving.models.batcher import Batcher
from seq2seq_memattn.serving.models.loaded_model import LoadedModel
from seq2seq_memattn.serving.models.versions import ServedModel
from seq2seq_memattn.serving.options import ServerOptions
from seq2seq_memattn.serving.protocol.json_tensors import InputBounds
from seq2seq_memattn.serving.protocol.predict import (
    PredictRequest,
    format_error,
    format_predict,
    parse_predict,
)
from seq2seq_memattn.serving.protocol.reports import format_metadata, format_status

T = TypeVar("T")

CLIENT_GONE = 499  # status for metrics if the client has disconnected; nobody receives it

# Larger bodies and answers take more than a few milliseconds and are processed in a thread.
LARGE_BODY = 32_768  # bytes
LARGE_ANSWER = 10_000  # elements
MAX_ANSWER = 500_000  # elements: an alignment of 500 by 1,000, which takes half a second to write


@dataclass
class Prediction:
    """The response to a `:predict` request.

    Args:
        body: JSON text of the answer or of the error.
        status: HTTP status.
        headers: headers of the response.
        model: name of the model; "" if it does not exist.
        signature: name of the signature; "" if it does not exist.
        num_rows: rows of the request.
    """

    body: bytes = b""
    status: int = CLIENT_GONE
    headers: dict[str, str] = field(default_factory=dict)
    model: str = ""
    signature: str = ""
    num_rows: int = 0


@dataclass(frozen=True)
class _Endpoint:
    """A model and its batcher."""

    model: ServedModel
    batcher: Batcher


class Service:
    """Loads models and answers requests for them.

    Args:
        folders: export folder of each model, by name of the model.
        options: `ServerOptions`.

    Raises:
        ValueError: if a folder has no version, or its newest version cannot be loaded.
        OSError: if a folder cannot be read.
    """

    def __init__(self, folders: Mapping[str, Path], options: ServerOptions) -> None:
        self.metrics = Metrics()
        self._bounds = InputBounds(options.max_queue, options.max_text_bytes)
        self._endpoints: dict[str, _Endpoint] = {}
        try:
            for name, folder in folders.items():
                self._open(name, folder, options)
        except BaseException:
            self.close()
            raise

    async def predict(
        self, name: str, version: int | None, body: bytes, started: float | None = None
    ) -> Prediction:
        """Answers a `:predict` request.

        Args:
            name: name of the model.
            version: version of the model; None for the newest.
            body: body of the request.
            started: `time.perf_counter()` when the request's headers arrived; None: now.

        Returns:
            The response: an answer or an error.
        """
        prediction = Prediction()
        started = time.perf_counter() if started is None else started
        try:
            endpoint = self._endpoint(name)
            prediction.model = name
            with endpoint.model.lease(version) as model:
                prediction.headers["X-Model-Version"] = str(model.version)
                await self._answer(prediction, endpoint.batcher, model, body)
        except RequestError as error:
            prediction.status = error.status
            prediction.headers.update(error.headers)
            prediction.body = format_error(error.message)
        except Exception:
            prediction.status = 500
            raise
        finally:
            self.metrics.request_done(
                prediction.model,
                prediction.signature,
                prediction.status,
                prediction.num_rows,
                time.perf_counter() - started,
            )
        return prediction

    async def _answer(
        self, prediction: Prediction, batcher: Batcher, model: LoadedModel, body: bytes
    ) -> None:
        request = await _run(len(body) > LARGE_BODY, lambda: self._read(body, model))
        prediction.signature, prediction.num_rows = request.signature.name, request.num_rows
        answer = await batcher.submit(model, request.signature, request.inputs)
        num_elements = sum(array.size for array in answer.outputs.values())
        if num_elements > MAX_ANSWER:
            raise invalid(f"the answer has {num_elements:,} values; {MAX_ANSWER:,} are allowed")
        prediction.body = await _run(
            num_elements > LARGE_ANSWER, lambda: format_predict(answer.outputs, request.by_rows)
        )
        prediction.headers["Server-Timing"] = _timing(answer)
        prediction.status = 200

    def _read(self, body: bytes, model: LoadedModel) -> PredictRequest:
        request = parse_predict(body, model.signatures, self._bounds)
        model.check(request.inputs)
        return request

    def status(self, name: str, version: int | None) -> bytes:
        """The status of a model's versions, as JSON; raises RequestError if it is not served."""
        return format_status(self._endpoint(name).model.statuses(version))

    def metadata(self, name: str, version: int | None) -> bytes:
        """The signatures of a model, as JSON; raises RequestError if it is not served."""
        with self._endpoint(name).model.lease(version) as model:
            return format_metadata(name, model.version, model.signature_defs)

    def models(self) -> list[dict[str, Any]]:
        """The description of each model for the web page, in the order given to the service."""
        found = []
        for name, endpoint in self._endpoints.items():
            with endpoint.model.lease() as model:
                found.append(
                    {
                        "name": name,
                        "version": model.version,
                        "export": model.export,
                        "signatures": sorted(model.signatures),
                    }
                )
        return found

    def close(self) -> None:
        """Ends the threads; call it when all requests have been answered."""
        for endpoint in self._endpoints.values():
            endpoint.batcher.close()
            endpoint.model.close()

    def _open(self, name: str, folder: Path, options: ServerOptions) -> None:
        model = ServedModel(name, folder, options.poll_seconds)
        batcher = Batcher(
            options.max_batch,
            options.max_wait_ms / 1000,
            options.max_queue,
            options.parallel_batches,
            functools.partial(self.metrics.batch_done, name),
        )
        self._endpoints[name] = _Endpoint(model, batcher)
        self.metrics.watch(name, lambda: batcher.num_waiting, lambda: model.version)

    def _endpoint(self, name: str) -> _Endpoint:
        if name not in self._endpoints:
            raise not_found(f"Servable not found for request: Latest({name})")
        return self._endpoints[name]


async def _run(is_large: bool, work: Callable[[], T]) -> T:
    """Runs work directly, or in a thread if it is so large that other requests would wait."""
    return await asyncio.to_thread(work) if is_large else work()


def _timing(answer: Answer) -> str:
    """The Server-Timing header: milliseconds in the model and in its queue."""
    model, queue = 1000 * answer.model_seconds, 1000 * answer.queue_seconds
    return f"model;dur={model:.3f}, queue;dur={queue:.3f}"

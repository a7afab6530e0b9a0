"""Dynamic batching: computes requests of several clients together."""

import asyncio
import collections
import heapq
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import numpy as np

from seq2seq_memattn.serving.errors import RequestError, busy, invalid
from seq2seq_memattn.serving.models.batch_items import Answer, Item, Model, divide, rows_of
from seq2seq_memattn.serving.models.signatures import Arrays, Signature


class Batcher:
    """Computes the requests for one model in batches.

    When the model is idle, the row that has waited longest starts a batch. Rows for the same
    signature and version join it, closest in length first, because padding also costs time. An idle
    model first waits, for at most `max_wait`, until as many requests are waiting as when the last
    batch was taken: answered clients often send their next request at once. A client that is
    left alone therefore waits for the others at most once.

    If a row's outputs would be padded to the length of other rows (see
    `Signature.rows_are_separate`), each request is computed alone.

    Use a batcher from one event loop only. The model runs in other threads.

    Args:
        max_batch: int > 0. The maximum number of rows in a batch.
        max_wait: float >= 0. The longest time in seconds that an idle model waits for more rows.
        max_queue: int > 0. The maximum number of waiting rows.
        parallel_batches: int > 0. Batches computed at the same time. A batch with large matrix
            products uses all cores by itself. Several batches at a time share the cores; they help
            if most of the time passes between operations.
        on_batch: called with signature, number of rows and seconds of each computed batch, or None.
    """

    def __init__(
        self,
        max_batch: int,
        max_wait: float,
        max_queue: int,
        parallel_batches: int = 1,
        on_batch: Callable[[str, int, float], None] | None = None,
    ) -> None:
        self._max_batch = max_batch
        self._max_wait = max_wait
        self._max_queue = max_queue
        self._parallel_batches = parallel_batches
        self._on_batch = on_batch
        self._queue: collections.deque[Item] = collections.deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._more = asyncio.Event()
        self._num_expected = 1  # requests that an idle model waits for
        self._threads = ThreadPoolExecutor(parallel_batches, thread_name_prefix="batch")
        self.num_waiting = 0  # rows in the queue

    async def submit(self, model: Model, signature: Signature, inputs: Arrays) -> Answer:
        """Computes a request together with others.

        Args:
            model: the model.
            signature: signature of the model to compute.
            inputs: array of each input by name.

        Returns:
            The answer to this request.

        Raises:
            RequestError: status 503 if the queue is full, 400 if the request has too many rows, or
                the error of the model.
        """
        items = divide(model, signature, inputs, self._max_batch)
        num_rows = sum(item.num_rows for item in items)
        if num_rows > self._max_queue:
            raise invalid(f"at most {self._max_queue} rows are allowed, got {num_rows}")
        if self.num_waiting + num_rows > self._max_queue:
            raise busy(f"the queue is full: {self.num_waiting} of {self._max_queue} rows wait")
        request = items[0].request
        self._queue.extend(items)
        self.num_waiting += num_rows
        self._more.set()
        self._start_workers(math.ceil(len(items) / self._max_batch))
        try:
            await request.done
        finally:
            # If the client has disconnected, its waiting rows are not computed.
            if request.num_missing:
                self._remove([item for item in self._queue if item.request is request])
        return request.answer()

    def close(self) -> None:
        """Ends the threads; call it when all requests have been answered."""
        for worker in list(self._workers):
            worker.cancel()
        self._threads.shutdown()

    def _start_workers(self, num_batches: int) -> None:
        """Starts a worker for each new batch, as far as `parallel_batches` allows."""
        num_more = min(num_batches, self._parallel_batches - len(self._workers))
        for _ in range(num_more):
            self._workers.add(asyncio.get_running_loop().create_task(self._work()))

    async def _work(self) -> None:
        """Computes batches while rows are waiting."""
        try:
            while self._queue:
                await self._wait_for_more()
                batch = self._next_batch()
                if batch:
                    await self._compute(batch)
        except Exception as error:  # a bug in this class must not leave clients waiting for ever
            for item in self._queue:
                item.request.fail(error)
        finally:
            # Not in a callback, which would run later: the next request must start a new worker.
            self._workers.discard(cast(asyncio.Task[None], asyncio.current_task()))

    async def _wait_for_more(self) -> None:
        """Waits for more rows that can share the next batch."""
        deadline = time.perf_counter() + self._max_wait
        while (
            self._queue
            and not self._queue[0].is_alone
            and self.num_waiting < self._max_batch
            and self._num_requests() < self._num_expected
        ):
            self._more.clear()
            try:
                async with asyncio.timeout(max(0.0, deadline - time.perf_counter())):
                    await self._more.wait()
            except TimeoutError:
                return

    def _num_requests(self) -> int:
        return len({id(item.request) for item in self._queue})

    def _next_batch(self) -> list[Item]:
        """Takes the oldest item from the queue, and the items that share its batch."""
        if not self._queue:
            return []
        oldest = self._queue[0]
        batch = [oldest]
        if not oldest.is_alone:
            others = [
                item
                for item in self._queue
                if item is not oldest
                and not item.is_alone
                and item.request.group == oldest.request.group
            ]
            batch += heapq.nsmallest(
                self._max_batch - 1, others, key=lambda item: abs(item.length - oldest.length)
            )
        self._num_expected = self._num_requests()
        self._remove(batch)
        return batch

    def _remove(self, items: Sequence[Item]) -> None:
        gone = set(map(id, items))
        self._queue = collections.deque(item for item in self._queue if id(item) not in gone)
        self.num_waiting = sum(item.num_rows for item in self._queue)

    async def _compute(self, batch: list[Item]) -> None:
        """Computes a batch; if that fails, computes the rows of each request separately."""
        try:
            await self._run(batch)
        except RequestError as error:
            requests = {id(item.request): item.request for item in batch}
            if len(requests) == 1:
                batch[0].request.fail(error)
                return
            for request in requests.values():
                if not request.done.done():
                    await self._compute([item for item in batch if item.request is request])
        except Exception as error:
            for item in batch:
                item.request.fail(error)

    async def _run(self, batch: list[Item]) -> None:
        request = batch[0].request
        inputs = {
            name: np.concatenate([item.inputs[name] for item in batch])
            if len(batch) > 1
            else batch[0].inputs[name]
            for name in request.inputs
        }
        outputs, seconds = await asyncio.get_running_loop().run_in_executor(
            self._threads, _timed_run, request.model, request.signature, inputs
        )
        num_rows = sum(item.num_rows for item in batch)
        if not batch[0].is_alone:
            _check_rows(outputs, num_rows)
        if self._on_batch is not None:
            self._on_batch(request.signature, num_rows, seconds)
        for one in {id(item.request): item.request for item in batch}.values():
            one.model_seconds += seconds
        for position, item in enumerate(batch):
            item.request.put(item.index, outputs if item.is_alone else rows_of(outputs, position))


def _timed_run(model: Model, signature: str, inputs: Arrays) -> tuple[Arrays, float]:
    started = time.perf_counter()
    outputs = model.run(signature, inputs)
    return outputs, time.perf_counter() - started


def _check_rows(outputs: Arrays, num_rows: int) -> None:
    """Raises RequestError unless each output has one row for each row of the batch."""
    if any(len(array) != num_rows for array in outputs.values()):
        raise RequestError(500, "the model's outputs and inputs differ in their number of rows")

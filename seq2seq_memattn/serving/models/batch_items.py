"""Requests as a batcher sees them: divided into what never is divided further."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from seq2seq_memattn.serving.errors import invalid
from seq2seq_memattn.serving.models.signatures import Arrays, Signature


class Model(Protocol):
    """What the batcher needs of a model."""

    def run(self, signature: str, inputs: Arrays) -> Arrays: ...


@dataclass
class Answer:
    """What became of a request.

    Args:
        outputs: array of each output by name, rows in the request's order.
        model_seconds: time in the model of the batches that its rows were in.
        queue_seconds: the rest of the time that it took.
    """

    outputs: Arrays
    model_seconds: float
    queue_seconds: float


class Request:
    """The rows of one client, which may come back in several batches.

    Args:
        model: that computes them.
        signature: of the model.
        inputs: array of each input by name.
        num_items: how many parts it consists of.
    """

    def __init__(self, model: Model, signature: Signature, inputs: Arrays, num_items: int) -> None:
        self.model = model
        self.signature = signature.name
        self.inputs = inputs
        self.arrived = time.perf_counter()
        self.model_seconds = 0.0
        self.outputs: list[Arrays | None] = [None] * num_items
        self.num_missing = num_items
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # What shares a batch: one function, and rows that can be put into one array.
        shapes = tuple(array.shape[1:] for array in inputs.values())
        self.group = (id(model), self.signature, shapes)

    def fail(self, error: BaseException) -> None:
        if not self.done.done():
            self.done.set_exception(error)

    def answer(self) -> Answer:
        """All outputs, when all parts are there."""
        parts = [part for part in self.outputs if part is not None]
        outputs = parts[0]
        if len(parts) > 1:
            outputs = {name: np.concatenate([part[name] for part in parts]) for name in outputs}
        waited = time.perf_counter() - self.arrived - self.model_seconds
        return Answer(outputs, self.model_seconds, max(0.0, waited))

    def put(self, index: int, outputs: Arrays) -> None:
        self.outputs[index] = outputs
        self.num_missing -= 1
        if not self.num_missing and not self.done.done():
            self.done.set_result(None)


@dataclass(eq=False)
class Item:
    """What is never divided: a row, or the whole of a request whose rows are not separate."""

    request: Request
    index: int
    num_rows: int
    inputs: Arrays
    length: int
    is_alone: bool


def divide(model: Model, signature: Signature, inputs: Arrays, max_batch: int) -> list[Item]:
    """Divides a request into its rows, or leaves it whole if they are not separate.

    Args:
        model: that shall compute it.
        signature: of the model.
        inputs: array of each input by name.
        max_batch: rows of a batch.

    Returns:
        Items of one new request.

    Raises:
        RequestError: if it may not be divided, but has more rows than a batch.
    """
    num_rows = len(next(iter(inputs.values()))) if signature.has_rows else 1
    if not signature.rows_are_separate:
        if num_rows > max_batch:
            # Its rows have the size of the longest: parts of it would not fit together.
            raise invalid(
                f"at most {max_batch} rows are allowed for the signature {signature.name!r}, "
                f"got {num_rows}"
            )
        return [Item(Request(model, signature, inputs, 1), 0, num_rows, inputs, 0, is_alone=True)]
    request = Request(model, signature, inputs, num_rows)
    lengths = _lengths(inputs, num_rows)
    return [
        Item(request, row, 1, rows_of(inputs, row), lengths[row], is_alone=False)
        for row in range(num_rows)
    ]


def rows_of(arrays: Arrays, row: int) -> Arrays:
    """One row of each array, still with the batch's axis."""
    return {name: array[row : row + 1] for name, array in arrays.items()}


def _lengths(inputs: Arrays, num_rows: int) -> list[int]:
    """Bytes of each row's strings: what stands for the number of its tokens."""
    lengths = [0] * num_rows
    for array in inputs.values():
        if array.dtype == object:
            for row in range(num_rows):
                lengths[row] += sum(map(len, _strings(array[row])))
    return lengths


def _strings(value: Any) -> Iterable[bytes]:
    return value.ravel() if isinstance(value, np.ndarray) else [value]

"""Requests as a batcher sees them: divided into items, the smallest units of a batch."""

import asyncio
import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from seq2seq_memattn.serving.errors import invalid
from seq2seq_memattn.serving.models.signatures import Arrays, Signature


class Model(Protocol):
    """The interface that the batcher needs from a model."""

    def run(self, signature: str, inputs: Arrays) -> Arrays: ...


@dataclass
class Answer:
    """The answer to a request.

    Args:
        outputs: array of each output by name, with rows in the order of the request.
        model_seconds: time that all batches with rows of the request took in the model.
        queue_seconds: the rest of the time until the answer.
    """

    outputs: Arrays
    model_seconds: float
    queue_seconds: float


class Request:
    """A request of one client; its rows may be computed in several batches.

    Args:
        model: the model that computes the rows.
        signature: the signature that the client asked for.
        inputs: array of each input by name.
        num_items: number of items into which the request is divided.
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
        # Requests of one group may share a batch: same model, signature and shape of a row.
        shapes = tuple(array.shape[1:] for array in inputs.values())
        self.group = (id(model), self.signature, shapes)

    def fail(self, error: BaseException) -> None:
        if not self.done.done():
            self.done.set_exception(error)

    def answer(self) -> Answer:
        """The whole answer; call it when all items are done."""
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
    """The unit of a batch: one row, or a whole request whose rows are not separate."""

    request: Request
    index: int
    num_rows: int
    inputs: Arrays
    length: int
    is_alone: bool


def divide(model: Model, signature: Signature, inputs: Arrays, max_batch: int) -> list[Item]:
    """Divides a request into rows, or keeps it whole if its rows are not separate.

    Args:
        model: the model that will compute the request.
        signature: signature of the model.
        inputs: array of each input by name.
        max_batch: the maximum number of rows in a batch.

    Returns:
        The items of a new `Request`.

    Raises:
        RequestError: if the rows are not separate and there are more than `max_batch`.
    """
    num_rows = len(next(iter(inputs.values()))) if signature.has_rows else 1
    if not signature.rows_are_separate:
        if num_rows > max_batch:
            # Outputs are padded to the longest row, so outputs of parts would differ in shape.
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
    """One row of each array, with the batch axis kept."""
    return {name: array[row : row + 1] for name, array in arrays.items()}


def _lengths(inputs: Arrays, num_rows: int) -> list[int]:
    """Bytes of the strings in each row, as an estimate of its number of tokens."""
    lengths = [0] * num_rows
    for array in inputs.values():
        if array.dtype == object:
            for row in range(num_rows):
                lengths[row] += sum(map(len, array[row : row + 1].ravel()))
    return lengths

"""One version of an exported model in memory."""

import json
import logging
import re
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers operations that SavedModels use
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2
from tensorflow_serving.apis import prediction_log_pb2

from seq2seq_memattn.serving.errors import RequestError, invalid
from seq2seq_memattn.serving.layout import EXPORT, EXTRA, SAVED_MODEL, WARMUP_REQUESTS
from seq2seq_memattn.serving.models.signatures import (
    DEFAULT_SIGNATURE,
    Arrays,
    Signature,
    TensorSpec,
)
from seq2seq_memattn.serving.models.written_text import WrittenText

SERVE_TAG = "serve"

# Text that TensorFlow adds before and after the message of a failed operation.
_BEFORE = ("Graph execution error:", "<stack traces unavailable>")
_BEHIND = re.compile(r"\[\[\{\{.*?\}\}\]\]|\{\{.*?\}\}|\[Op:\w+\]")
# TensorFlow writes the data of a failed `Assert` on one line, with quotes escaped.
_ASSERTION = re.compile(r"assertion failed: \[(.*)\]$", re.MULTILINE)
_ESCAPED = re.compile(r"""\\(['"\\])""")
MESSAGE_LENGTH = 500  # characters; a message may repeat a text of the request


class LoadedModel:
    """One version of a model, loaded and warmed up.

    Args:
        folder: folder of the version; its name is the version number.

    Raises:
        ValueError: if the version cannot be loaded, or fails on one of its warm-up requests.
    """

    def __init__(self, folder: Path) -> None:
        self.version = int(folder.name)
        try:
            self.signature_defs = read_signature_defs(folder)
            # Exports need no gradients, but TensorFlow warns about each function that has none.
            logging.getLogger("absl").addFilter(_is_no_warning_of_gradients)
            self._model = tf.saved_model.load(str(folder))
            matrices = getattr(self._model, "matrices", [])  # of exports in eight bits
            weakref.finalize(self, _destroy, [matrix.resource_handle for matrix in matrices])
            functions = self._model.signatures
            self._complaints = dict(getattr(self._model, "complaints", {}))
            self.signatures = {
                name: _signature(name, self.signature_defs[name]) for name in functions
            }
            self.export = _read_export(folder / EXPORT)
            self._written = WrittenText(self.export.get("text_form", {}), folder / EXTRA)
            self._warm_up(folder / WARMUP_REQUESTS)
        # TensorFlow raises many kinds of errors for a damaged folder, even AttributeError.
        except Exception as error:
            message = error.message if isinstance(error, RequestError) else str(error)
            first = next(iter(message.splitlines()), type(error).__name__)
            raise ValueError(f"{folder}: the model cannot be loaded: {first}") from error

    def check(self, inputs: Arrays) -> None:
        """Checks each text of a request, so that an invalid one does not make its batch fail.

        Raises:
            RequestError: status 400 if the model says that it cannot encode a text. Models of other
                projects offer no such check, so they fail only in `run`.
        """
        checks = {name: check for name, check in self._complaints.items() if name in inputs}
        if not checks:
            return
        given = self._written.inputs(inputs)
        for name, check in checks.items():
            for complaint in filter(None, check(tf.constant(given[name])).numpy()):
                raise invalid(complaint.decode("utf-8")[:MESSAGE_LENGTH])

    def run(self, signature: str, inputs: Arrays) -> Arrays:
        """Computes a signature's outputs.

        Args:
            signature: name of a signature of the model.
            inputs: array of each input by name.

        Returns:
            Array of each output by name; strings are bytes. Texts are plain text, see
            `WrittenText`.

        Raises:
            RequestError: status 400 if the model refuses the inputs, 500 if it fails otherwise.
        """
        function = self._model.signatures[signature]
        try:
            given = self._written.inputs(inputs)
            outputs = function(**{name: tf.constant(value) for name, value in given.items()})
            found = {name: _array(value) for name, value in sorted(outputs.items())}
            return self._written.outputs(found)
        except tf.errors.InvalidArgumentError as error:
            raise invalid(_readable(error)) from None
        except Exception as error:
            # The message may repeat the text of the request, which must not appear in logs.
            raise RequestError(500, f"the model failed: {type(error).__name__}") from None

    def _warm_up(self, file: Path) -> None:
        """Runs the warm-up requests of an export: the first run of a graph is slow."""
        if not file.exists():
            return
        for record in tf.data.TFRecordDataset(str(file)).as_numpy_iterator():
            log = prediction_log_pb2.PredictionLog.FromString(record)
            if not log.HasField("predict_log"):  # for another API, such as classification
                continue
            request = log.predict_log.request
            inputs = {name: tf.make_ndarray(value) for name, value in request.inputs.items()}
            self.run(request.model_spec.signature_name or DEFAULT_SIGNATURE, inputs)


def _array(value: Any) -> np.ndarray:
    """A tensor as an array; strings as bytes in an array of objects, whatever their shape."""
    return np.asarray(value.numpy(), object if value.dtype == tf.string else None)


def _destroy(resources: Iterable[Any]) -> None:
    for resource in resources:
        tf.raw_ops.DestroyResourceOp(resource=resource, ignore_lookup_error=True)


def read_signature_defs(folder: Path) -> Mapping[str, meta_graph_pb2.SignatureDef]:
    """Reads the signatures of a SavedModel from its file, without loading the model."""
    saved_model = saved_model_pb2.SavedModel.FromString((folder / SAVED_MODEL).read_bytes())
    for graph in saved_model.meta_graphs:
        if SERVE_TAG in graph.meta_info_def.tags:
            return dict(graph.signature_def)
    raise ValueError(f"expected a graph with the tag {SERVE_TAG!r}, found none")


def _signature(name: str, definition: meta_graph_pb2.SignatureDef) -> Signature:
    return Signature(name, _specs(definition.inputs), _specs(definition.outputs))


def _specs(tensors: Mapping[str, meta_graph_pb2.TensorInfo]) -> dict[str, TensorSpec]:
    return {
        name: TensorSpec(
            np.dtype(tf.dtypes.as_dtype(tensors[name].dtype).as_numpy_dtype),
            _shape(tensors[name].tensor_shape),
        )
        for name in sorted(tensors)
    }


def _shape(shape: Any) -> tuple[int | None, ...] | None:
    if shape.unknown_rank:
        return None
    return tuple(None if axis.size < 0 else axis.size for axis in shape.dim)


def _read_export(file: Path) -> dict[str, Any]:
    """Reads the description of an export; {} if the model was not exported by this package."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def _readable(error: tf.errors.OpError) -> str:
    """The message of a failed operation, without TensorFlow's details of the graph."""
    message = error.message
    for before in _BEFORE:
        message = message.rpartition(before)[2]
    asserted = _ASSERTION.search(message)
    if asserted:
        words = _ESCAPED.sub(r"\1", asserted[1].replace("] [", " "))
    else:
        words = " ".join(_BEHIND.sub("", message).split())
    return words[:MESSAGE_LENGTH] or "the model refuses the request"


def _is_no_warning_of_gradients(record: logging.LogRecord) -> bool:
    return "unsaved custom gradients" not in record.getMessage()

"""One version of an exported model in memory."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  SavedModels use its operations, which it registers
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

# What TensorFlow puts before and behind the message of a failed operation.
_BEFORE = ("Graph execution error:", "<stack traces unavailable>")
_BEHIND = re.compile(r"\[\[\{\{.*?\}\}\]\]|\{\{.*?\}\}|\[Op:\w+\]")
# How TensorFlow writes the data of a failed `Assert`: in one line, quotes escaped.
_ASSERTION = re.compile(r"assertion failed: \[(.*)\]$", re.MULTILINE)
_ESCAPED = re.compile(r"""\\(['"\\])""")
MESSAGE_LENGTH = 500  # characters; the message may repeat a text


class LoadedModel:
    """A version of a model, loaded and warm.

    Args:
        folder: of the version, named by its number.

    Raises:
        ValueError: if it cannot be loaded, or fails at a request recorded in it.
    """

    def __init__(self, folder: Path) -> None:
        self.version = int(folder.name)
        try:
            self.signature_defs = read_signature_defs(folder)
            self._model = tf.saved_model.load(str(folder))
            functions = self._model.signatures
            self.signatures = {
                name: _signature(name, self.signature_defs[name]) for name in functions
            }
            self.export = _read_export(folder / EXPORT)
            self._written = WrittenText(self.export.get("text_form", {}), folder / EXTRA)
            self._warm_up(folder / WARMUP_REQUESTS)
        # TensorFlow raises what it likes at a damaged folder, such as AttributeError.
        except Exception as error:
            message = error.message if isinstance(error, RequestError) else str(error)
            first = next(iter(message.splitlines()), type(error).__name__)
            raise ValueError(f"{folder}: the model cannot be loaded: {first}") from error

    def run(self, signature: str, inputs: Arrays) -> Arrays:
        """Computes a signature's outputs.

        Args:
            signature: name of one that the model has.
            inputs: array of each of its inputs.

        Returns:
            Array of each output by name; strings are bytes. Texts are as people write them, see
            `WrittenText`.

        Raises:
            RequestError: of status 400 for what the model refuses, 500 if it fails otherwise.
        """
        function = self._model.signatures[signature]
        try:
            given = self._written.inputs(inputs)
            outputs = function(**{name: tf.constant(value) for name, value in given.items()})
            found = {name: np.asarray(value.numpy()) for name, value in sorted(outputs.items())}
            return self._written.outputs(found)
        except tf.errors.InvalidArgumentError as error:
            raise invalid(_readable(error)) from None
        except Exception as error:
            # Its message may repeat the request's text, which shall not come into logs.
            raise RequestError(500, f"the model failed: {type(error).__name__}") from None

    def _warm_up(self, file: Path) -> None:
        """Runs the requests recorded in an export, so that nobody waits for its first run."""
        if not file.exists():
            return
        for record in tf.data.TFRecordDataset(str(file)).as_numpy_iterator():
            log = prediction_log_pb2.PredictionLog.FromString(record)
            request = log.predict_log.request
            inputs = {name: tf.make_ndarray(value) for name, value in request.inputs.items()}
            self.run(request.model_spec.signature_name or DEFAULT_SIGNATURE, inputs)


def read_signature_defs(folder: Path) -> Mapping[str, meta_graph_pb2.SignatureDef]:
    """Reads the signatures of a SavedModel as they are in its file, without loading it."""
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
    """What the export says of itself; nothing if it is not one of this project's."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def _readable(error: tf.errors.OpError) -> str:
    """The message of a failed operation, without what TensorFlow adds about its graph."""
    message = error.message
    for before in _BEFORE:
        message = message.rpartition(before)[2]
    asserted = _ASSERTION.search(message)
    if asserted:
        words = _ESCAPED.sub(r"\1", asserted[1].replace("] [", " "))
    else:
        words = " ".join(_BEHIND.sub("", message).split())
    return words[:MESSAGE_LENGTH] or "the model refuses the request"

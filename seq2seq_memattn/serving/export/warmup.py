"""Requests that a server takes a new version through before it answers anybody."""

from pathlib import Path

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from seq2seq_memattn.serving.layout import WARMUP_REQUESTS

BATCH_SIZES = (1, 8)


def write_warmup(folder: Path, name: str, text: str) -> None:
    """Writes TensorFlow Serving's file of warm-up requests.

    Args:
        folder: of the version.
        name: of the model.
        text: a source.
    """
    with tf.io.TFRecordWriter(str(folder / WARMUP_REQUESTS)) as writer:
        for batch_size in BATCH_SIZES:
            texts = [text] * batch_size
            inputs = {"text": texts}
            writer.write(_log(name, "serving_default", inputs))
            writer.write(_log(name, "align", inputs))
            writer.write(_log(name, "score", {**inputs, "translation": texts}))


def _log(name: str, signature: str, inputs: dict[str, list[str]]) -> bytes:
    request = predict_pb2.PredictRequest()
    request.model_spec.name = name
    request.model_spec.signature_name = signature
    for key, values in inputs.items():
        request.inputs[key].CopyFrom(tf.make_tensor_proto(values, tf.string))
    log = prediction_log_pb2.PredictLog(request=request)
    return prediction_log_pb2.PredictionLog(predict_log=log).SerializeToString()

"""Warm-up requests, which a server runs on a new version before it answers clients."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from seq2seq_memattn.serving.layout import WARMUP_REQUESTS

BATCH_SIZES = (1, 8)


def write_warmup(
    folder: Path, name: str, text: str, signatures: Mapping[str, Sequence[str]]
) -> None:
    """Writes TensorFlow Serving's file of warm-up requests.

    Args:
        folder: folder of the version.
        name: name of the model.
        text: the source in the requests. Their other texts are empty, because every vocabulary can
            encode an empty text.
        signatures: the inputs of each signature, by name of the signature.
    """
    with tf.io.TFRecordWriter(str(folder / WARMUP_REQUESTS)) as writer:
        for batch_size in BATCH_SIZES:
            for signature, inputs in signatures.items():
                values: dict[str, str | int] = {"text": text, "seed": 0}
                given = {each: [values.get(each, "")] * batch_size for each in inputs}
                writer.write(_log(name, signature, given))


def _log(name: str, signature: str, inputs: Mapping[str, list[str | int]]) -> bytes:
    request = predict_pb2.PredictRequest()
    request.model_spec.name = name
    request.model_spec.signature_name = signature
    for key, values in inputs.items():
        request.inputs[key].CopyFrom(tf.make_tensor_proto(values))
    log = prediction_log_pb2.PredictLog(request=request)
    return prediction_log_pb2.PredictionLog(predict_log=log).SerializeToString()

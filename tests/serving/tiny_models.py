"""Tiny SavedModels: one with the signatures of exported translation models, one of numbers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

REFUSED = "@"  # a text that contains this makes the whole batch fail
UNKNOWN = "#"  # a text that contains this is refused before it is batched
SLOW = "sleepy"  # a text that contains this takes long

TEXT = tf.TensorSpec([None], tf.string)


class Reverser(tf.Module):
    """A model that translates by reversing the words of a text.

    Args:
        prefix: start of every translation, which identifies the version.
    """

    def __init__(self, prefix: str = "") -> None:
        super().__init__()
        self.prefix = tf.Variable(prefix)
        self.complaints = {"text": self.complaint}

    @tf.function(input_signature=[TEXT])
    def complaint(self, text: tf.Tensor) -> tf.Tensor:
        is_unknown = tf.strings.regex_full_match(text, f"(?s).*{UNKNOWN}.*")
        return tf.where(is_unknown, "an unknown symbol", "")

    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        refused = tf.boolean_mask(text, tf.strings.regex_full_match(text, f"(?s).*{REFUSED}.*"))
        check = tf.debugging.Assert(tf.equal(tf.size(refused), 0), ["no symbol for", refused])
        with tf.control_dependencies([check, self._sleep(text)]):
            words = tf.strings.split(text)
        reversed_words = tf.strings.reduce_join(
            tf.reverse(words.to_tensor(""), [1]), 1, separator=" "
        )
        best = tf.strings.join([self.prefix, tf.strings.strip(reversed_words)])
        lengths = tf.cast(words.row_lengths(), tf.int32)
        rows = tf.shape(text)[0]
        return {
            "translations": tf.stack([best, tf.strings.join([best, "!"])], 1),
            "log_probs": tf.cast(-tf.stack([lengths, lengths + 1], 1), tf.float32) * 0.1,
            "num_tokens": tf.stack([lengths, lengths], 1),
            "source_is_cut": tf.zeros([rows], tf.bool),
        }

    @staticmethod
    def _sleep(text: tf.Tensor) -> tf.Tensor:
        """Computes for a second or more for each slow text of a batch."""
        slow = tf.strings.regex_full_match(text, f".*{SLOW}.*")
        size = tf.constant([700, 700])
        steps = 200 * tf.reduce_sum(tf.cast(slow, tf.int32))
        product = tf.while_loop(
            lambda step, _: step < steps,
            lambda step, x: (step + 1, tf.matmul(x, x) * 0.001),
            [0, tf.ones(size)],
        )
        return product[0]

    @tf.function(input_signature=[TEXT])
    def serving_default(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        return self.translate(text)

    @tf.function(input_signature=[TEXT])
    def align(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        outputs = self.translate(text)
        pieces = tf.strings.split(tf.strings.join([text, " </s>"])).to_tensor("")
        size = tf.shape(pieces)[1]
        alignments = tf.eye(size, batch_shape=[tf.shape(text)[0]])
        return {
            **outputs,
            "source_pieces": pieces,
            "target_pieces": pieces,
            "alignments": alignments,
        }

    @tf.function(input_signature=[TEXT, TEXT])
    def score(self, text: tf.Tensor, translation: tf.Tensor) -> dict[str, tf.Tensor]:
        lengths = tf.strings.length(text) + tf.strings.length(translation)
        return {"log_probs": -tf.cast(lengths, tf.float32), "num_tokens": lengths}


class HalfPlusTwo(tf.Module):
    """TensorFlow Serving's example, half of a number plus two, and signatures of other types."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def half_plus_two(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": x / 2 + 2}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, name="tag"),
            tf.TensorSpec([None, 5], tf.int64, name="signal"),
            tf.TensorSpec([None, 2, 2], tf.float64, name="sensor"),
        ]
    )
    def several(self, tag: tf.Tensor, signal: tf.Tensor, sensor: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "tag_bytes": tag,
            "total": tf.reduce_sum(signal, 1),
            "trace": tf.linalg.trace(sensor),
            "is_even": tf.equal(tf.reduce_sum(signal, 1) % 2, 0),
        }

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32, name="count")])
    def countdown(self, count: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"numbers": tf.range(count, 0, -1)}


def export_reverser(
    folder: Path, version: int, prefix: str = "", export: Mapping[str, Any] | None = None
) -> Path:
    """Writes a version of the reversing model, then moves it into place; returns its folder."""
    model = Reverser(prefix)
    making = folder.parent / f"{folder.name}.{version}.tmp"
    signatures = {
        "serving_default": model.serving_default,
        "align": model.align,
        "score": model.score,
    }
    tf.saved_model.save(model, str(making), signatures=signatures)
    extra = making / "assets.extra"
    extra.mkdir()
    write_warmup(extra / "tf_serving_warmup_requests", "a b")
    if export is not None:
        (extra / "export.json").write_text(json.dumps(export), encoding="utf-8")
    folder.mkdir(exist_ok=True)
    return making.rename(folder / str(version))


def export_half_plus_two(folder: Path, version: int = 123) -> Path:
    """Writes the number model; returns its version's folder."""
    model = HalfPlusTwo()
    tf.saved_model.save(
        model,
        str(folder / str(version)),
        signatures={
            "serving_default": model.half_plus_two,
            "several": model.several,
            "countdown": model.countdown,
        },
    )
    return folder / str(version)


def write_warmup(file: Path, text: str) -> None:
    """Records one warm-up request, after one for an API that the server does not have."""
    other = prediction_log_pb2.PredictionLog()
    other.classify_log.request.model_spec.name = "reverser"
    request = predict_pb2.PredictRequest()
    request.model_spec.signature_name = "serving_default"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto([text]))
    log = prediction_log_pb2.PredictionLog(
        predict_log=prediction_log_pb2.PredictLog(request=request)
    )
    with tf.io.TFRecordWriter(str(file)) as writer:
        writer.write(other.SerializeToString())
        writer.write(log.SerializeToString())

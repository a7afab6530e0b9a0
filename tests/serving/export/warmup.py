from pathlib import Path

import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2


def assert_warmup_is_answered(version: Path) -> None:
    """Asserts that a version's warm-up has a request for each signature, and all are answered."""
    model = tf.saved_model.load(str(version))
    path = version / "assets.extra" / "tf_serving_warmup_requests"
    logs = [
        prediction_log_pb2.PredictionLog.FromString(record.numpy())
        for record in tf.data.TFRecordDataset(str(path))
    ]
    names = [log.predict_log.request.model_spec.signature_name for log in logs]
    assert {*names} == {*model.signatures}
    for name, log in zip(names, logs, strict=True):
        inputs = log.predict_log.request.inputs
        given = {key: tf.constant(tf.make_ndarray(value)) for key, value in inputs.items()}
        assert model.signatures[name](**given)

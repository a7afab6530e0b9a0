"""Compiled functions."""

import logging

import keras
import pytest
from keras import ops

from seq2seq_memattn.compute.backend import compiled


class Doubler:
    """An object with a method to compile."""

    def double(self, x: object) -> object:
        return ops.multiply(x, 2.0)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a warning of TensorFlow")
@pytest.mark.parametrize("jit_compile", [False, True])
def test_the_same_method_of_many_objects_is_compiled_without_a_warning(
    jit_compile: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = keras.Sequential()
    log = logging.getLogger("tensorflow")
    monkeypatch.setattr(log, "filters", [])  # commands leave this warning out
    log.addHandler(caplog.handler)  # `log` passes no messages on
    try:
        for _ in range(6):
            double = compiled(model, Doubler().double, jit_compile)
            assert ops.convert_to_numpy(double(ops.ones([2]))).tolist() == [2.0, 2.0]
    finally:
        log.removeHandler(caplog.handler)
    assert not [record for record in caplog.records if "retracing" in record.getMessage()]

"""The model on JAX, without TensorFlow in the process, gives TensorFlow's results.

`tests/search/test_jax_search.py` tests search on JAX.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.losses import TokenCrossEntropy
from seq2seq_memattn.model import Seq2Seq
from tests.inputs import randomise
from tests.marks import slow
from tests.running import run_python
from tests.test_model import OPTIONS, SIZES, SOURCE, TARGET_INPUTS, TARGET_OUTPUTS
from tests.tolerances import as_array, assert_close

SCRIPT = """
import os
import sys

sys.modules["tensorflow"] = None  # importing it fails from here on
os.environ["KERAS_BACKEND"] = "jax"

import json

import jax
import keras
import numpy as np

from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.losses import TokenCrossEntropy
from seq2seq_memattn.model import Seq2Seq

folder, fits, *names = sys.argv[1:]
assert keras.backend.backend() == "jax"
with np.load(f"{folder}/batch.npz") as arrays:
    outputs, weights = arrays["target_outputs"], arrays["weights"]
    ids = {name: arrays[name] for name in ("source", "target_inputs")}
for name in names:
    with open(f"{folder}/{name}.json") as stream:
        model = Seq2Seq(ModelConfig.from_dict(json.load(stream)))
    model.load_weights(f"{folder}/{name}.weights.h5")
    np.save(f"{folder}/{name}.npy", model(ids))
    if fits == "fit":
        try:
            model({**ids, "source": ids["source"][:, ::-1]})
        except ValueError as error:
            assert "expected padding after the real tokens" in str(error)
        else:
            raise AssertionError("padding before real tokens was taken")
        source = jax.numpy.asarray(ids["source"])  # captured by the compiled function
        compiled = jax.jit(lambda inputs: model({"source": source, "target_inputs": inputs}))
        np.testing.assert_allclose(compiled(ids["target_inputs"]), model(ids), atol=1e-5)
        model.compile(keras.optimizers.SGD(0.5), TokenCrossEntropy())
        options = {"sample_weight": weights, "batch_size": len(outputs), "epochs": 3, "verbose": 0}
        history = model.fit(ids, outputs, **options)
        with open(f"{folder}/{name}.losses.json", "w") as stream:
            json.dump(history.history["loss"], stream)
        model.save_weights(f"{folder}/{name}.trained.weights.h5")
    if fits == "drop":
        first, second = (np.array(model(ids, training=True)) for _ in range(2))
        assert (first != second).any()
        model.compile("adam", TokenCrossEntropy())
        floats = {name: array.astype("float32") for name, array in ids.items()}
        history = model.fit(floats, outputs, batch_size=2, epochs=2, verbose=0)
        assert np.isfinite(history.history["loss"]).all()
"""
BATCH: dict[str, Any] = {"source": SOURCE, "target_inputs": TARGET_INPUTS}
WEIGHTS = np.random.default_rng(0).uniform(0.5, 1.5, TARGET_OUTPUTS.shape)
REAL = (TARGET_INPUTS != 0)[:, :, None]


ONE_LAYER = {"encoder_layers": 1, "decoder_layers": 1}


def model_named(name: str, **more: Any) -> Seq2Seq:
    model = Seq2Seq(ModelConfig(**{**SIZES, "dropout": 0.0, **OPTIONS[name], **more}))
    randomise(model, scale=0.3)
    return model


def run_on_jax(folder: Path, fits: str, *names: str, **more: Any) -> None:
    """Runs the models on JAX; writes their logits and the losses of a few updates into files."""
    np.savez(folder / "batch.npz", target_outputs=TARGET_OUTPUTS, weights=WEIGHTS, **BATCH)
    for name in names:
        model = model_named(name, **more)
        (folder / f"{name}.json").write_text(json.dumps(model.config.to_dict()))
        model.save_weights(folder / f"{name}.weights.h5")
    process = run_python("-c", SCRIPT, str(folder), fits, *names)
    assert process.returncode == 0, process.stderr.decode()[-3000:]


@pytest.mark.parametrize("name", ["reference", *slow("bahdanau")])
def test_logits_and_training_equal_those_of_tensorflow(tmp_path: Path, name: str) -> None:
    run_on_jax(tmp_path, "fit", name, **ONE_LAYER)
    model = model_named(name, **ONE_LAYER)
    ours = np.load(tmp_path / f"{name}.npy")
    assert_close(ours * REAL, as_array(model(BATCH)) * REAL)
    losses = json.loads((tmp_path / f"{name}.losses.json").read_text())
    assert losses[2] < losses[1] < losses[0]
    model.compile("sgd", TokenCrossEntropy())
    model.optimizer.learning_rate = 0.5
    options: dict[str, Any] = {"sample_weight": WEIGHTS, "batch_size": 3, "epochs": 3, "verbose": 0}
    history = model.fit(BATCH, TARGET_OUTPUTS, **options)
    np.testing.assert_allclose(losses, history.history["loss"], rtol=1e-4)
    trained = model_named(name, **ONE_LAYER)
    trained.load_weights(tmp_path / f"{name}.trained.weights.h5")
    for ours, expected in zip(trained.weights, model.weights, strict=True):
        np.testing.assert_allclose(as_array(ours), as_array(expected), rtol=0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_logits_with_every_option_equal_those_of_tensorflow(tmp_path: Path, part: int) -> None:
    names = list(OPTIONS)[part::4]
    run_on_jax(tmp_path, "", *names)
    for name in names:
        ours = np.load(tmp_path / f"{name}.npy")
        assert_close(ours * REAL, as_array(model_named(name)(BATCH)) * REAL)


@pytest.mark.slow
def test_dropout_trains_with_and_without_input_feeding(tmp_path: Path) -> None:
    run_on_jax(tmp_path, "drop", "reference", "unfed", dropout=0.5)

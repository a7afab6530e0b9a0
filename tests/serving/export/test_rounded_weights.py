import gc
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from seq2seq_memattn.serving.export.graph import ServingGraph, text_model_of
from seq2seq_memattn.serving.export.options import ExportOptions
from seq2seq_memattn.serving.export.rounded_weights import RoundedMatrix, RoundedWeights
from seq2seq_memattn.serving.export.saved_model import write
from seq2seq_memattn.serving.models.loaded_model import LoadedModel
from tests.serving.export.test_graph import call, run_of
from tests.serving.models.test_loaded_model import texts

OPTIONS = ExportOptions(beam_size=2, n_best=1)
PAIRS = ["x y x", "v w x y", "z"], ["a b", "c", "b"]

MATRIX = np.random.default_rng(3).normal(size=[40, 50]).astype(np.float32)


def test_a_matrix_is_rounded_by_the_slices_that_fit_better() -> None:
    scales = np.geomspace(0.01, 1.0, 40, dtype=np.float32)[:, None]
    for matrix, expected in ((MATRIX * scales, (40, 1)), (MATRIX.T * scales.T, (1, 40))):
        rounded = RoundedMatrix(matrix)
        values, found = rounded.variables
        assert values.dtype == tf.int8 and found.shape == expected
        np.testing.assert_allclose(tf.convert_to_tensor(rounded), matrix, atol=0.02, rtol=0.02)


def test_variables_are_read_rounded_inside_the_scope_alone() -> None:
    layer = keras.layers.Dense(50)
    layer.build((None, 40))
    layer.kernel.assign(MATRIX)
    layer.bias.assign(MATRIX[0])
    with RoundedWeights(layer.variables) as scope:
        kernel, bias = layer.kernel + 0.0, layer.bias + 0.0
        again = layer.kernel + 0.0
    (matrix,) = scope.matrices
    for each in (kernel, again):
        np.testing.assert_array_equal(each, tf.convert_to_tensor(matrix))
    np.testing.assert_array_equal(bias, MATRIX[0])
    np.testing.assert_array_equal(layer.kernel + 0.0, MATRIX)


@pytest.fixture(scope="module")
def run() -> Any:
    return run_of("k_memory", embedding_dim=32, encoder_units=32, decoder_units=32)


@pytest.fixture(scope="module")
def folder(run: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version with matrices in eight bits."""
    path = tmp_path_factory.mktemp("rounded") / "1"
    path.mkdir()
    write(text_model_of(run, OPTIONS), OPTIONS, path, {}, "", in_int8=True)
    return path


def test_matrices_are_stored_as_int8(folder: Path) -> None:
    stored = tf.train.load_checkpoint(str(folder / "variables" / "variables"))
    found = [np.asarray(stored.get_tensor(name)) for name in stored.get_variable_to_shape_map()]
    weights = [array for array in found if array.dtype in (np.float32, np.int8)]
    assert all(
        (array.dtype == np.int8) == (min(array.shape) > 2) for array in weights if array.ndim == 2
    )
    floats = sum(array.nbytes for array in weights if array.dtype == np.float32)
    assert floats < 0.2 * sum(array.nbytes for array in weights)


def test_an_empty_matrix_stays_as_it_is() -> None:
    # Such a matrix comes from folding a readout that reads only the decoder's output.
    with RoundedWeights([]) as scope:
        assert isinstance(scope.stored(tf.zeros([4, 0])), tf.Variable)
        assert isinstance(scope.stored(tf.ones([4, 3])), RoundedMatrix)
        assert isinstance(scope.stored(tf.ones([2, 9])), tf.Variable)  # the biases of a GRU


def test_answers_are_close_to_the_run_s(run: Any, folder: Path) -> None:
    expected = call(ServingGraph(text_model_of(run, OPTIONS), OPTIONS).function("score"), *PAIRS)
    found = tf.saved_model.load(str(folder)).signatures["score"]
    log_probs = found(text=tf.constant(PAIRS[0]), translation=tf.constant(PAIRS[1]))["log_probs"]
    np.testing.assert_allclose(log_probs, expected["log_probs"], rtol=0.05)
    assert (log_probs.numpy() != expected["log_probs"]).any()


def test_tensorflow_serving_s_way_of_loading_finds_the_same(folder: Path) -> None:
    found = LoadedModel(folder).run("serving_default", texts(*PAIRS[0]))
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], str(folder))
        signature = graph.signature_def["serving_default"]
        output, given = signature.outputs["log_probs"].name, signature.inputs["text"].name
        np.testing.assert_allclose(session.run(output, {given: PAIRS[0]}), found["log_probs"])


def test_matrices_are_freed_with_the_model(folder: Path) -> None:
    first, second = LoadedModel(folder), LoadedModel(folder)
    handle = first._model.matrices[0].resource_handle
    assert tf.raw_ops.VarIsInitializedOp(resource=handle)
    del first
    gc.collect()
    assert not tf.raw_ops.VarIsInitializedOp(resource=handle)
    assert second.run(
        "score", {"text": np.array(["x"], object), "translation": np.array(["a"], object)}
    )

from pathlib import Path
from typing import Any

import jax
import keras
import numpy as np
import pytest
import tensorflow as tf

from seq2seq_memattn.compute.precision import BFloat16Products, dtype_policy, product_dtype
from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.model import Seq2Seq
from tests.tolerances import as_array

CONFIG = ModelConfig(
    source_vocab_size=7,
    target_vocab_size=8,
    embedding_dim=5,
    encoder_units=4,
    decoder_units=6,
    attention="k_memory:3",
)
BATCH = {
    "source": np.array([[3, 4, 2]], np.int32),
    "target_inputs": np.array([[1, 5, 6]], np.int32),
}


@pytest.mark.parametrize(
    ("precision", "compute", "products"),
    [
        ("float32", "float32", "float32"),
        ("bfloat16_products", "float32", "bfloat16"),
        ("mixed_bfloat16", "bfloat16", "bfloat16"),
        ("float64", "float64", "float64"),
    ],
)
def test_a_precision_says_what_is_computed_and_multiplied_in(
    precision: str, compute: str, products: str
) -> None:
    layer = keras.layers.Dense(2, dtype=dtype_policy(precision))
    assert (layer.compute_dtype, product_dtype(layer)) == (compute, products)


def test_jax_without_float64_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="JAX needs JAX_ENABLE_X64=1 in the environment"):
        dtype_policy("float64")
    with jax.enable_x64(True):
        assert dtype_policy("float64").name == "float64"


def rounded_products(graph: Any) -> list[str]:
    """The names of a TensorFlow graph's products in bfloat16."""
    definition = graph.as_graph_def()
    functions = definition.library.function
    nodes = [*definition.node, *(node for function in functions for node in function.node_def)]
    narrow = tf.bfloat16.as_datatype_enum
    return [node.name for node in nodes if "MatMul" in node.op and node.attr["T"].type == narrow]


def test_products_are_rounded_in_training_alone() -> None:
    model = Seq2Seq(CONFIG, dtype=BFloat16Products())
    forward = tf.function(lambda training: model(BATCH, training=training), autograph=False)
    graphs = [forward.get_concrete_function(training).graph for training in (False, True)]
    assert [bool(rounded_products(graph)) for graph in graphs] == [False, True]


def test_a_saved_model_keeps_its_products_dtype(tmp_path: Path) -> None:
    model = Seq2Seq(CONFIG, dtype=BFloat16Products())
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.models.load_model(path)
    assert product_dtype(loaded.cell.cells[0]) == "bfloat16"
    np.testing.assert_array_equal(as_array(loaded(BATCH)), as_array(model(BATCH)))


@pytest.mark.parametrize("precision", ["bfloat16_products", "int8_products"])
def test_copies_of_layers_keep_the_policy(precision: str) -> None:
    model = Seq2Seq(CONFIG, dtype=dtype_policy(precision))
    for layer in (model.encoder, model.bridge, model.cell.attention):
        again = type(layer).from_config(layer.get_config())
        assert type(again.dtype_policy) is type(model.dtype_policy), layer.name

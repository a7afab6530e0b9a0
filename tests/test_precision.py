from pathlib import Path

import keras
import numpy as np
import pytest

from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.precision import BFloat16Products, dtype_policy, product_dtype
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


def test_a_saved_model_keeps_its_products_dtype(tmp_path: Path) -> None:
    model = Seq2Seq(CONFIG, dtype=BFloat16Products())
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.models.load_model(path)
    assert product_dtype(loaded.cell.cells[0]) == "bfloat16"
    np.testing.assert_array_equal(as_array(loaded(BATCH)), as_array(model(BATCH)))

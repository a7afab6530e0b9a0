import numpy as np
import pytest

from seq2seq_memattn.compute.precision import product
from tests.inputs import normal, run, tensor
from tests.tolerances import as_array, assert_close

X, WEIGHTS = tensor(normal(2, 3, 40)), tensor(normal(40, 5), "bfloat16")


@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
def test_operands_are_rounded_and_their_product_is_not(mode: str) -> None:
    found = run(mode, product, X, WEIGHTS)
    expected = as_array(tensor(X, "bfloat16")) @ as_array(WEIGHTS)
    assert found.dtype == "float32"
    assert_close(found, expected)


def test_in_training_the_product_is_rounded_too() -> None:
    found = product(X, WEIGHTS, training=True)
    assert found.dtype == "float32"
    assert_close(found, as_array(tensor(X, "bfloat16")) @ as_array(WEIGHTS), "bfloat16")
    np.testing.assert_array_equal(as_array(found), as_array(tensor(found, "bfloat16")))


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_operands_of_one_dtype_give_a_product_of_it(dtype: str) -> None:
    x, weights = tensor(normal(3, 4), dtype), tensor(normal(4, 5), dtype)
    found = product(x, weights)
    assert found.dtype == dtype
    assert_close(found, as_array(x) @ as_array(weights), dtype)

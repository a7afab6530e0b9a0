import os
from typing import Any

import numpy as np
import pytest
from keras import ops

from seq2seq_memattn.compute.hardware import has_int8_units
from seq2seq_memattn.compute.int8 import (
    has_int8_kernel,
    int8_matrix,
    int8_product,
    int8_sums,
    rounded,
)
from tests.inputs import MODES, run
from tests.tolerances import as_array, assert_close

RANDOM = np.random.default_rng(5)
MATRIX = RANDOM.normal(size=[7, 4]).astype(np.float32)
INPUTS = RANDOM.normal(size=[2, 3, 7]).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1])
def test_each_slice_is_rounded_to_whole_numbers_of_its_own_scale(axis: int) -> None:
    values, scales = (as_array(array) for array in rounded(MATRIX, axis))
    assert (np.abs(values).max(axis) == 127).all()
    np.testing.assert_array_equal(values, np.round(values))
    assert (np.abs(values * scales - MATRIX) <= scales / 2 * 1.0001).all()


@pytest.mark.parametrize("mode", MODES)
def test_products_are_those_of_the_rounded_numbers(mode: str) -> None:
    matrix, inputs = MATRIX.copy(), INPUTS.copy()
    matrix[:, 1], inputs[1, 2] = 0.0, 0.0  # a slice of zeros has no scale of its own
    found = run(mode, lambda x, y: int8_product(x, int8_matrix(y)), inputs, matrix)
    values, scales = as_array(int8_matrix(matrix).values), as_array(int8_matrix(matrix).scales)
    assert values.dtype == np.int8
    row_scales = np.maximum(np.abs(inputs).max(axis=-1, keepdims=True) / 127, 1e-30)
    sums = np.round(inputs / row_scales).astype(np.int64) @ values.astype(np.int64)
    assert_close(found, sums * row_scales * scales)
    np.testing.assert_allclose(as_array(found), inputs @ matrix, atol=0.05)


def test_a_product_has_the_dtype_of_its_inputs() -> None:
    product: Any = int8_product(ops.cast(INPUTS, "bfloat16"), int8_matrix(MATRIX))
    assert str(product.dtype).endswith("bfloat16'>") or str(product.dtype) == "bfloat16"


@pytest.mark.parametrize("has_units", [False, True])
def test_the_plain_graph_has_exact_sums_with_and_without_units_for_eight_bits(
    has_units: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_units and (not has_int8_units() or os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0"):
        pytest.skip("needs a processor with VNNI, and oneDNN")
    monkeypatch.setattr("seq2seq_memattn.compute.int8.has_int8_units", lambda: has_units)
    has_int8_kernel.cache_clear()
    try:
        assert has_int8_kernel() == has_units
        # The largest sums: without VNNI, oneDNN's would overflow.
        x, y = np.full([3, 64], 127, np.float32), np.full([64, 5], 127, np.int8)
        x[1], y[:, 2] = -127, -127
        found = run("graph", lambda x, y: int8_sums(x, y, ops.sum(ops.cast(y, "float32"), 0)), x, y)
        np.testing.assert_array_equal(as_array(found), x.astype(np.int64) @ y.astype(np.int64))
    finally:
        has_int8_kernel.cache_clear()

"""How close two results must be: one tolerance per dtype and device for all tests."""

from typing import Any

import keras
import numpy as np
import numpy.typing as npt

# Relative errors. "gpu": products of float32 may run in TensorFloat-32, with 10 bits of mantissa.
TOLERANCES = {
    "cpu": {"float64": 1e-10, "float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2},
    "gpu": {"float64": 1e-10, "float32": 2e-3, "float16": 5e-3, "bfloat16": 4e-2},
}


def tolerance(dtype: str) -> float:
    """The allowed relative error of results computed in `dtype`."""
    return TOLERANCES[_device()][dtype]


def assert_close(actual: Any, expected: Any, dtype: str = "float32") -> None:
    """Asserts that two structures of arrays are equal up to the rounding of `dtype`.

    The error of an element is relative to the largest element of its array, because small elements
    may be sums of large terms.

    Args:
        actual: tensor, array, or a structure of them.
        expected: the same structure; a single array may be nested lists of numbers.
        dtype: the dtype in which the less precise side was computed.
    """
    if keras.ops.is_tensor(actual) or isinstance(actual, np.ndarray):
        actual, expected = [actual], [as_array(expected)]
    actual, expected = keras.tree.flatten(actual), keras.tree.flatten(expected)
    assert len(actual) == len(expected), f"{len(actual)} arrays, expected {len(expected)}"
    for ours, theirs in zip(actual, expected, strict=True):
        ours, theirs = as_array(ours), as_array(theirs)
        assert ours.shape == theirs.shape, f"shape {ours.shape}, expected {theirs.shape}"
        assert np.isfinite(theirs).all()
        scale = np.max(np.abs(theirs), initial=0.0)
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=tolerance(dtype) * scale)


def as_array(x: Any) -> npt.NDArray[Any]:
    """A tensor or array as a NumPy array; floats of any dtype become float64."""
    if keras.ops.is_tensor(x) or isinstance(x, keras.Variable):
        kind = keras.backend.standardize_dtype(x.dtype)
        if kind in ("float16", "bfloat16"):
            x = keras.ops.cast(x, "float32")
        x = keras.ops.convert_to_numpy(x)
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def _device() -> str:
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
    return "cpu"

"""Small seeded inputs and ways to run a function, shared by all tests."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any
from unittest import mock

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from seq2seq_memattn.loops import scan

MODES = ("eager", "graph")


def run(mode: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls `function` eagerly, in a `tf.function` ("graph"), or compiled by XLA ("xla").

    In the modes "eager_padded" and "graph_padded", loops keep padded rows, as under XLA.
    """
    how, _, padding = mode.partition("_")
    assert how in ("eager", "graph", "xla") and padding in ("", "padded"), mode
    with mock.patch.object(scan, "has_static_shapes", lambda: True) if padding else nullcontext():
        if how == "eager":
            return function(*arguments)
        return tf.function(function, jit_compile=how == "xla")(*arguments)


def lower_to_hlo(function: Callable[..., Any], *arguments: Any) -> str:
    """The HLO of a function traced with arguments whose first two sizes are unknown.

    No machine code is compiled, because that would take most of the time.
    """
    signature = tf.nest.map_structure(
        lambda x: tf.TensorSpec([None, None, *x.shape[2:]], x.dtype), arguments
    )
    compiled = tf.function(function, signature, jit_compile=True)
    text: str = compiled.experimental_get_compiler_ir(*arguments)(stage="hlo")
    return text


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> npt.NDArray[np.float64]:
    """Normally distributed numbers; each seed and shape gives different ones."""
    return scale * np.random.default_rng([seed, *shape]).normal(size=shape)


def tensor(x: Any, dtype: str = "float32") -> Any:
    """`x` as a tensor of the backend."""
    return keras.ops.convert_to_tensor(x, dtype)


def mask_of(lengths: Sequence[int], size: int) -> npt.NDArray[np.bool_]:
    """A bool array [batch, size], true on the first `lengths[i]` positions of row i."""
    return np.arange(size) < np.asarray(lengths)[:, None]


def randomise(layer: Any, seed: int = 0, scale: float = 0.5) -> None:
    """Gives every weight of a built layer random values, even biases, which often start at 0."""
    weights = [normal(*w.shape, seed=seed + i, scale=scale) for i, w in enumerate(layer.weights)]
    for variable, values in zip(layer.weights, weights, strict=True):
        if keras.backend.is_float_dtype(variable.dtype):
            variable.assign(values.astype(variable.dtype))

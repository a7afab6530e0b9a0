"""The products inside a loop over steps whose second operand does not change from step to step."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from seq2seq_memattn.backend import bfloat16_product


def product(x: Any, weights: Any, training: bool = False) -> Any:
    """The product x @ weights, of operands in the dtype of the weights.

    Args:
        x: float [..., units].
        weights: float [units, n], or [..., units, n].
        training: bool. Whether the product may be rounded to the dtype of the weights, as it is
            where processors multiply bfloat16 fastest; otherwise operands alone are rounded.

    Returns:
        float [..., n], in the dtype of x.
    """
    dtypes = tuple(keras.backend.standardize_dtype(array.dtype) for array in (x, weights))
    rounded = ops.cast(x, weights.dtype)
    if dtypes == ("float32", "bfloat16") and not training:
        return bfloat16_product(rounded, weights)
    return ops.cast(ops.matmul(rounded, weights), x.dtype)


def on_rows(function: Callable[[Any], Any], x: Any) -> Any:
    """A function of matrices [rows, n] -> [rows, m], applied to x: [..., n] -> [..., m].

    TensorFlow computes a product of more than two axes by `tensordot`. XLA cannot compile the
    gradient of that inside a loop whose sizes are unknown when it is traced.
    """
    result = function(ops.reshape(x, (-1, x.shape[-1])))
    return ops.reshape(result, (*ops.shape(x)[:-1], result.shape[-1]))


class Products:
    """Plain products, differentiated like everything else.

    A loop may put a subclass in its place that computes the gradients of the second operands
    in one large product after the loop (see `tensorflow_loop.py`).

    Args:
        weights: float [units, n] by name.
        rows: float [batch, rows, memory_units] that a step's scores combine, or None.
        training: see `product`.
    """

    def __init__(self, weights: dict[str, Any], rows: Any = None, training: bool = False) -> None:
        self.weights = weights
        self.rows = rows
        self.training = training

    def __call__(self, name: str, x: Any) -> Any:
        """The product x @ weights[name]: float [rows, units] -> [rows, n], in the dtype of x."""
        return product(x, self.weights[name], self.training)

    def combine(self, attention: Any, scores: Any) -> Any:
        """`attention.combine(scores, rows)`: float [batch, queries, memory_units]."""
        return attention.combine(scores, self.rows)

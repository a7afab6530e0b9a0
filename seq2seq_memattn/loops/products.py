"""Products inside a loop over steps; their second operand is the same at every step."""

from collections.abc import Callable
from typing import Any

from seq2seq_memattn.compute.precision import product


class Products:
    """Plain products, with plain gradients.

    A loop may use a subclass instead, which computes the gradients of the second operands in one
    large product after the loop (see `deferred_gradients.py`).

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

    def cropped(self, crop: Callable[[Any], Any]) -> "Products":
        """The products of a step with fewer sentences than the batch."""
        rows = None if self.rows is None else crop(self.rows)
        return Products(self.weights, rows, self.training)

    def combine(self, attention: Any, scores: Any) -> Any:
        """`attention.combine(scores, rows)`: float [batch, queries, memory_units]."""
        return attention.combine(scores, self.rows)

"""Products inside TensorFlow's loop over steps; their weights get their gradients after the loop.

In a plain loop, the backward pass of every step adds a gradient as large as the weights. Here, a
perturbation of 0 is added to each product inside the loop. The gradient of the perturbations of all
steps equals the gradient of the products. One product of this gradient with the recorded inputs
gives the gradient of the weights.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from seq2seq_memattn.loops.products import Products

ROWS = ""  # name of the product with the rows; no cell has this name


class DeferredProducts(Products):
    """Products inside a loop; their second operands get gradients after the loop.

    Args:
        products: the loop's plain products.
        steps: `PackedSteps` or `PaddedSteps`.
        dtype: of the products.
    """

    def __init__(self, products: Products, steps: Any, dtype: Any) -> None:
        frozen = {name: tf.stop_gradient(w) for name, w in products.weights.items()}
        rows = None if products.rows is None else tf.stop_gradient(products.rows)
        super().__init__(frozen, rows)
        self._steps = steps
        self._dtype = dtype
        # The gradient of a product's input needs the transposed weights: transposed once, before
        # the loop.
        self._transposed = {name: tf.transpose(w) for name, w in self.weights.items()}
        self._perturbations = {
            name: steps.read_array(self._perturbation(name, w))
            for name, w in products.weights.items()
        }
        if products.rows is not None:
            self._perturbations[ROWS] = steps.read_array(self._perturbation_of_rows(products.rows))
        self._records: dict[str, Any] = {}
        self._inputs: dict[str, Any] = {}

    def recorded_kinds(self) -> list[tuple[int, Any]]:
        """Widths and dtypes of what `recorded` returns."""
        kinds = [(w.shape[0], w.dtype) for w in self.weights.values()]
        return kinds if self.rows is None else [*kinds, (self.rows.shape[1], self.rows.dtype)]

    def bind(self, t: Any, crop: Callable[[Any], Any]) -> "DeferredProducts":
        """These products, set to step `t`; `crop` cuts arrays down to the rows of the step."""
        self._t, self._crop, self._inputs = t, crop, {}
        return self

    def recorded(self) -> list[Any]:
        """The first operands of the step's products, which the loop passes to `finish`."""
        return [tf.stop_gradient(self._inputs[name]) for name in self._perturbations]

    def finish(self, recorded: Sequence[Any]) -> None:
        """Receives, after the loop, what was recorded at all steps."""
        self._records = dict(zip(self._perturbations, recorded, strict=True))

    def __call__(self, name: str, x: Any) -> Any:
        weights, transposed = self.weights[name], self._transposed[name]
        dtype = x.dtype
        self._inputs[name] = x = tf.cast(x, weights.dtype)

        @tf.custom_gradient
        def product(x: Any) -> tuple[Any, Callable[[Any], Any]]:
            def gradient(upstream: Any) -> Any:
                return _final(tf.matmul(tf.cast(upstream, weights.dtype), transposed))

            return tf.cast(tf.matmul(x, weights), dtype), gradient

        return product(x) + self._perturbations[name].read(self._t)

    def combine(self, attention: Any, scores: Any) -> Any:
        del attention  # its `combine` is the plain weighted sum
        self._inputs[ROWS] = tf.squeeze(scores, 1)
        crop, rows = self._crop, self.rows

        @tf.custom_gradient
        def product(scores: Any) -> tuple[Any, Callable[[Any], Any]]:
            def gradient(upstream: Any) -> Any:
                made = tf.matmul(crop(rows), upstream, transpose_b=True)
                return _final(tf.linalg.matrix_transpose(made))

            return tf.matmul(scores, crop(rows)), gradient

        return product(scores) + tf.expand_dims(self._perturbations[ROWS].read(self._t), 1)

    def _perturbation(self, name: str, weights: Any) -> Any:
        @tf.custom_gradient
        def zeros(weights: Any) -> tuple[Any, Callable[[Any], Any]]:
            def gradient(upstream: Any) -> Any:
                upstream = tf.cast(upstream, weights.dtype)
                return _final(tf.matmul(self._records[name], upstream, transpose_a=True))

            return tf.zeros([self._steps.total, weights.shape[1]], self._dtype), gradient

        return zeros(weights)

    def _perturbation_of_rows(self, rows: Any) -> Any:
        @tf.custom_gradient
        def zeros(rows: Any) -> tuple[Any, Callable[[Any], Any]]:
            def gradient(upstream: Any) -> Any:
                scores = self._steps.by_row(self._records[ROWS])  # [batch, step, rows]
                upstream = self._steps.by_row(upstream)  # [batch, step, memory_units]
                return _final(tf.matmul(scores, upstream, transpose_a=True))

            return tf.zeros([self._steps.total, rows.shape[2]], rows.dtype), gradient

        return zeros(rows)


def _final(gradient: Any) -> Any:
    """Refuses gradients of `gradient`: they would lack the paths that `tf.stop_gradient` cuts."""
    message = "to compute gradients of gradients, call the layer with training=False"
    return tf.raw_ops.PreventGradient(input=gradient, message=message)

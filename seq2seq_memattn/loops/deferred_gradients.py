"""The loop over steps in TensorFlow, with the gradients of its weights taken after the loop.

Differentiated as it stands, a loop adds a gradient as large as the weights at every step. Here
each product inside the loop adds a perturbation that is 0; the gradient of the perturbations of
all steps is the gradient of the products, and one product with the recorded inputs gives the
gradient of the weights.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from seq2seq_memattn.loops.packed import PackedSteps
from seq2seq_memattn.loops.products import Products

Step = Callable[..., tuple[Any, Sequence[Any]]]


def loop(
    step: Step,
    carry: Any,
    inputs: Sequence[Any],
    products: Products,
    steps: Any,
    output_units: Sequence[int],
    defer: bool,
) -> list[Any]:
    """Runs `step` over all steps; see `recurrence.scan`."""
    timeline = _Packed(steps) if isinstance(steps, PackedSteps) else _Padded(steps)
    dtype = inputs[0].dtype
    bound = DeferredProducts(products, timeline, dtype) if defer else LoopProducts(products)
    arrays = [timeline.split(x) for x in inputs]
    kinds = [*((units, dtype) for units in output_units), *bound.recorded()]
    sinks = [timeline.sink(units, kind) for units, kind in kinds]
    flat_carry = tf.nest.flatten(carry)

    def body(t: Any, carried: list[Any], written: list[Any]) -> tuple[Any, list[Any], list[Any]]:
        crop = timeline.cropper(t)
        bound.enter(t, crop)
        state = tf.nest.pack_sequence_as(carry, [crop(x) for x in carried])
        state, outputs = step(bound, state, [array.read(t) for array in arrays], crop)
        outputs = [*outputs, *bound.leave()]
        written = [array.write(t, x) for array, x in zip(written, outputs, strict=True)]
        return t + 1, tf.nest.flatten(state), written

    invariants = (
        tf.TensorShape([]),
        [timeline.carry_shape(x) for x in flat_carry],
        [tf.TensorShape(None)] * len(sinks),
    )
    _, _, written = tf.while_loop(
        lambda t, *_: t < timeline.end,
        body,
        (tf.constant(0), flat_carry, sinks),
        shape_invariants=invariants,
        maximum_iterations=steps.num_steps,
    )
    results = [timeline.join(x, units) for x, (units, _) in zip(written, kinds, strict=True)]
    bound.finish(results[len(output_units) :])
    return results[: len(output_units)]


class LoopProducts(Products):
    """Products inside one loop, differentiated like everything else."""

    def __init__(self, products: Products) -> None:
        super().__init__(products.weights, products.rows)

    def recorded(self) -> list[tuple[int, Any]]:
        """Widths and dtypes of what `leave` returns."""
        return []

    def enter(self, t: Any, crop: Callable[[Any], Any]) -> None:
        """Called at the beginning of step `t`."""
        self._t, self._crop = t, crop

    def leave(self) -> list[Any]:
        """Called at the end of a step: what the loop is to record for `finish`."""
        return []

    def finish(self, recorded: Sequence[Any]) -> None:
        """Called after the loop with what was recorded of all steps."""

    def combine(self, attention: Any, scores: Any) -> Any:
        return attention.combine(scores, self._crop(self.rows))


class DeferredProducts(LoopProducts):
    """Products inside one loop whose second operands get their gradients after it."""

    def __init__(self, products: Products, timeline: Any, dtype: Any) -> None:
        frozen = {name: tf.stop_gradient(w) for name, w in products.weights.items()}
        rows = None if products.rows is None else tf.stop_gradient(products.rows)
        super().__init__(Products(frozen, rows))
        self._timeline = timeline
        self._dtype = dtype
        # The gradient of a product's input needs the weights transposed: done once, out here.
        self._transposed = {name: tf.transpose(w) for name, w in self.weights.items()}
        self._perturbations = {
            name: timeline.split(self._perturbation(name, w))
            for name, w in products.weights.items()
        }
        self._row_perturbation: Any = (
            None if self.rows is None else timeline.split(self._perturbation_of_rows(products.rows))
        )
        self._records: dict[str, Any] = {}
        self._inputs: dict[str, Any] = {}

    def recorded(self) -> list[tuple[int, Any]]:
        kinds = [(w.shape[0], w.dtype) for w in self.weights.values()]
        return kinds if self.rows is None else [*kinds, (self.rows.shape[1], self.rows.dtype)]

    def enter(self, t: Any, crop: Callable[[Any], Any]) -> None:
        super().enter(t, crop)
        self._inputs = {}

    def leave(self) -> list[Any]:
        names = [*self.weights, *([] if self.rows is None else [""])]
        return [tf.stop_gradient(self._inputs[name]) for name in names]

    def finish(self, recorded: Sequence[Any]) -> None:
        names = [*self.weights, *([] if self.rows is None else [""])]
        self._records = dict(zip(names, recorded, strict=True))

    def __call__(self, name: str, x: Any) -> Any:
        weights, transposed = self.weights[name], self._transposed[name]
        dtype = x.dtype
        self._inputs[name] = x = tf.cast(x, weights.dtype)

        @tf.custom_gradient
        def product(x: Any) -> tuple[Any, Callable[[Any], Any]]:
            def gradient(upstream: Any) -> Any:
                return tf.matmul(tf.cast(upstream, weights.dtype), transposed)

            return tf.cast(tf.matmul(x, weights), dtype), gradient

        return product(x) + self._perturbations[name].read(self._t)

    def combine(self, attention: Any, scores: Any) -> Any:
        del attention  # its `combine` is the plain weighted sum
        self._inputs[""] = tf.squeeze(scores, 1)
        crop, rows = self._crop, self.rows

        @tf.custom_gradient
        def product(scores: Any) -> tuple[Any, Callable[[Any], Any]]:
            def gradient(upstream: Any) -> Any:
                return tf.linalg.matrix_transpose(tf.matmul(crop(rows), upstream, transpose_b=True))

            return tf.matmul(scores, crop(rows)), gradient

        return product(scores) + tf.expand_dims(self._row_perturbation.read(self._t), 1)

    def _perturbation(self, name: str, weights: Any) -> Any:
        @tf.custom_gradient
        def zeros(weights: Any) -> tuple[Any, Callable[[Any], Any]]:
            def gradient(upstream: Any) -> Any:
                upstream = tf.cast(upstream, weights.dtype)
                return tf.matmul(self._records[name], upstream, transpose_a=True)

            return tf.zeros([self._timeline.total, weights.shape[1]], self._dtype), gradient

        return zeros(weights)

    def _perturbation_of_rows(self, rows: Any) -> Any:
        @tf.custom_gradient
        def zeros(rows: Any) -> tuple[Any, Callable[[Any], Any]]:
            def gradient(upstream: Any) -> Any:
                scores = self._timeline.by_row(self._records[""])  # [batch, step, rows]
                upstream = self._timeline.by_row(upstream)  # [batch, step, memory_units]
                return tf.matmul(scores, upstream, transpose_a=True)

            return tf.zeros([self._timeline.total, rows.shape[2]], rows.dtype), gradient

        return zeros(rows)


class _Packed:
    """Reads and writes of a loop over `PackedSteps`."""

    def __init__(self, steps: PackedSteps) -> None:
        self._steps = steps
        self.total = steps.total
        longest = tf.math.count_nonzero(steps.sizes, dtype=tf.int32)  # no later step holds rows
        self._sizes = steps.sizes[: tf.maximum(longest, 1)]  # one, since arrays cannot be empty
        self.end = tf.size(self._sizes)

    def split(self, x: Any) -> tf.TensorArray:
        return self.sink(x.shape[-1], x.dtype).split(x, self._sizes)

    def sink(self, units: int, dtype: Any) -> tf.TensorArray:
        return tf.TensorArray(dtype, self.end, infer_shape=False, element_shape=[None, units])

    def join(self, array: tf.TensorArray, units: int) -> Any:
        return tf.ensure_shape(array.concat(), [None, units])

    def by_row(self, x: Any) -> Any:
        return self._steps.unpack_sorted(x)

    def cropper(self, t: Any) -> Callable[[Any], Any]:
        size = self._sizes[t]

        def crop(x: Any) -> Any:
            # `tf.slice`, for its gradient is one padding; that of x[:size] is slower.
            rest = [-1] * (len(x.shape) - 1)
            cropped = tf.slice(x, [0] * len(x.shape), [size, *rest])
            cropped.set_shape([None, *x.shape[1:]])
            return cropped

        return crop

    def carry_shape(self, x: Any) -> tf.TensorShape:
        return tf.TensorShape([None, *x.shape[1:]])


class _Padded:
    """Reads and writes of a loop over `PaddedSteps`, with shapes that XLA knows ahead."""

    def __init__(self, steps: Any) -> None:
        self._steps = steps
        self.total = steps.num_steps * steps.batch
        self.end = tf.reduce_max(steps.lengths)  # what follows is padding, for which zeros do

    def split(self, x: Any) -> tf.TensorArray:
        x = tf.reshape(x, [self._steps.num_steps, self._steps.batch, x.shape[-1]])
        array = tf.TensorArray(x.dtype, self._steps.num_steps, element_shape=x.shape[1:])
        return array.unstack(x)

    def sink(self, units: int, dtype: Any) -> tf.TensorArray:
        shape = [tf.get_static_value(tf.convert_to_tensor(self._steps.batch)), units]
        return tf.TensorArray(dtype, self._steps.num_steps, element_shape=shape)

    def join(self, array: tf.TensorArray, units: int) -> Any:
        return tf.reshape(array.stack(), [self.total, -1 if units is None else units])

    def by_row(self, x: Any) -> Any:
        units = tf.shape(x)[-1] if x.shape[-1] is None else x.shape[-1]
        x = tf.reshape(x, [self._steps.num_steps, self._steps.batch, units])
        return tf.transpose(x, [1, 0, 2])

    def cropper(self, t: Any) -> Callable[[Any], Any]:
        del t
        return lambda x: x

    def carry_shape(self, x: Any) -> tf.TensorShape:
        return tf.TensorShape(x.shape)

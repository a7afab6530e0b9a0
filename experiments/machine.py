"""What the machine itself can do: the rates that measured speeds are put beside."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

Shape = tuple[int, int, int]  # rows, inner, columns


def median_seconds(work: Callable[[], Any], repeats: int = 5, warm_up: int = 2) -> float:
    """Median wall seconds of some work."""
    for _ in range(warm_up):
        work()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def product_rate(shapes: Sequence[Shape], products: int = 40) -> float:
    """Floating-point operations per second of matrix products of some shapes, one after another.

    Args:
        shapes: rows, inner and columns of each product of a loop's step.
        products: int > 0. Repetitions of the sequence in one measurement.

    Returns:
        float: 2 * rows * inner * columns, summed, per second.
    """
    generator = np.random.default_rng(0)
    operands = [
        (
            ops.convert_to_tensor(generator.normal(size=(rows, inner)), dtype="float32"),
            ops.convert_to_tensor(generator.normal(size=(inner, columns)), dtype="float32"),
        )
        for rows, inner, columns in shapes
    ]

    def multiply(*flat: Any) -> Any:
        total: Any = 0.0
        for _ in range(products):
            for left, right in zip(flat[::2], flat[1::2], strict=True):
                # Each product waits for the one before, as in a loop over steps.
                total = ops.matmul(left + 1e-30 * total, right)[0, 0]
        return total

    run = _graph(multiply)
    flat = [operand for pair in operands for operand in pair]
    seconds = median_seconds(lambda: np.asarray(run(*flat)))
    return products * sum(2.0 * a * b * c for a, b, c in shapes) / seconds


def _graph(function: Callable[..., Any]) -> Callable[..., Any]:
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(function)
    import tensorflow as tf

    return tf.function(function, autograph=False)

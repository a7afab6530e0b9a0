"""What the machine itself can do: the rates that measured speeds are put beside."""

import concurrent.futures
import multiprocessing
import time
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

Shape = tuple[int, int, int]  # rows, inner, columns


class ProductRate:
    """Measures the rate of matrix products of some shapes, one after another as in a loop.

    Args:
        shapes: rows, inner and columns of each product of a loop's step.
        dtype: of the operands.
        products: int > 0. Repetitions of the sequence in one measurement.
    """

    def __init__(self, shapes: Sequence[Shape], dtype: str = "float32", products: int = 40) -> None:
        generator = np.random.default_rng(0)
        self._operands = [
            ops.convert_to_tensor(generator.normal(size=size), dtype=dtype)
            for rows, inner, columns in shapes
            for size in ((rows, inner), (inner, columns))
        ]
        self._operations = products * sum(2.0 * a * b * c for a, b, c in shapes)

        def multiply(*operands: Any) -> Any:
            total: Any = 0.0
            for _ in range(products):
                for left, right in zip(operands[::2], operands[1::2], strict=True):
                    # Each product waits for the one before.
                    total = ops.matmul(left + 1e-30 * total, right)[0, 0]
            return ops.cast(total, "float32")  # NumPy has no bfloat16

        self._run = _graph(multiply)
        self()  # traces

    def __call__(self) -> float:
        """Floating-point operations per second: 2 * rows * inner * columns for each product."""
        started = time.perf_counter()
        np.asarray(self._run(*self._operands))
        return self._operations / (time.perf_counter() - started)


def _graph(function: Callable[..., Any], jit_compile: bool = False) -> Callable[..., Any]:
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(function)
    import tensorflow as tf

    return tf.function(function, autograph=False, jit_compile=jit_compile)


class TanhRate:
    """Measures the rate of tanh, of arrays that stay in the processor's caches.

    Args:
        count: int > 0. Values of an array.
        repeats: int > 0. Times that it is taken.
    """

    def __init__(self, count: int = 2**20, repeats: int = 20) -> None:
        generator = np.random.default_rng(0)
        self._values = ops.convert_to_tensor(generator.normal(size=count), dtype="float32")
        self._count = count * repeats

        def work(values: Any) -> Any:
            for _ in range(repeats):
                values = ops.tanh(values)
            return values

        self._run = _graph(work, jit_compile=True)
        self()  # traces

    def __call__(self) -> float:
        """Values per second."""
        started = time.perf_counter()
        np.asarray(self._run(self._values))
        return self._count / (time.perf_counter() - started)


def peak_memory(setting: Any) -> int:
    """Bytes that the work of a `Setting` takes at its peak, beside what Python and libraries take.

    In a process of its own, after a first run that compiles. Linux alone.
    """
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        return pool.submit(_peak_memory, setting).result()


def _peak_memory(setting: Any) -> int:
    from experiments.benchmarks.timed_work import make_work

    np.asarray(ops.ones((2, 2)) @ ops.ones((2, 2)))  # starts the backend
    before = _memory("VmRSS")
    work = make_work(setting)
    work.run()
    with open("/proc/self/clear_refs", "w", encoding="ascii") as stream:
        stream.write("5")  # forgets the peak so far
    work.run()
    return _memory("VmHWM") - before


def _memory(name: str) -> int:
    """A figure of /proc/self/status, in bytes."""
    with open("/proc/self/status", encoding="ascii") as stream:
        (line,) = [line for line in stream if line.startswith(f"{name}:")]
    return 1024 * int(line.split()[1])

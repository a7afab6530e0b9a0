"""What the machine itself can do: the rates that measured speeds are put beside."""

import concurrent.futures
import multiprocessing
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


def _graph(function: Callable[..., Any], jit_compile: bool = False) -> Callable[..., Any]:
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(function)
    import tensorflow as tf

    return tf.function(function, autograph=False, jit_compile=jit_compile)


def tanh_rate(count: int = 2**20, repeats: int = 20) -> float:
    """Values of tanh per second, of arrays that stay in the processor's caches."""
    values = ops.convert_to_tensor(np.random.default_rng(0).normal(size=count), dtype="float32")

    def work(values: Any) -> Any:
        for _ in range(repeats):
            values = ops.tanh(values)
        return values

    run = _graph(work, jit_compile=True)
    return count * repeats / median_seconds(lambda: np.asarray(run(values)))


def use_threads(threads: int) -> None:
    """Sets how many threads TensorFlow has, before its first operation; JAX takes what it finds."""
    if keras.backend.backend() != "tensorflow":
        raise ValueError("the number of threads can be set with the TensorFlow backend alone")
    import tensorflow as tf

    if tf.config.threading.get_intra_op_parallelism_threads() != threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)


def peak_memory(setting: Any) -> int:
    """Bytes that the work of a `Setting` takes at its peak, beside what Python and libraries take.

    In a process of its own, after a first run that compiles. Linux alone.
    """
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        return pool.submit(_peak_memory, setting).result()


def _peak_memory(setting: Any) -> int:
    from experiments.timed_work import make_work

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

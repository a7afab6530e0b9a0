"""Differences between backends: shapes, compiled functions, products, devices."""

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from seq2seq_memattn.compute.private import is_traced_for_xla
from seq2seq_memattn.packages import BACKENDS, NAME

if keras.backend.backend() not in BACKENDS:
    raise ValueError(
        f"{NAME} runs on Keras with TensorFlow or JAX; got KERAS_BACKEND={keras.backend.backend()}"
    )

Function = Callable[..., Any]

WIDTH_STEP = 16  # where every new shape is compiled, widths are padded to a multiple of this


def has_static_shapes() -> bool:
    """Whether every shape must be known in advance: on JAX, and on TensorFlow under XLA."""
    return keras.backend.backend() != "tensorflow" or is_traced_for_xla()


def is_compiled_for_cpu() -> bool:
    """Whether the current trace is compiled by XLA for a CPU."""
    return has_static_shapes() and gpu_name() is None


def is_eager(*arrays: Any) -> bool:
    """Whether arrays have values now, that is, are not part of a graph being traced."""
    if keras.backend.backend() == "jax":
        import jax

        return not any(isinstance(array, jax.core.Tracer) for array in arrays)
    import tensorflow as tf

    return tf.executing_eagerly()


def compiled(
    model: Any,
    function: Function,
    jit_compile: bool = False,
    specs: dict[str, tuple[tuple[int | None, ...], str]] | None = None,
) -> Function:
    """Compiles a function of structures of arrays.

    Args:
        model: the model that the function uses; its weights are read anew at each call.
        function: takes and returns structures of arrays.
        jit_compile: whether XLA compiles the function, once for each combination of shapes. If
            not, TensorFlow traces the first few shapes and then uses one graph for all shapes. On
            JAX, XLA always compiles.
        specs: if the function takes one dict of tensors, the shape and dtype of each, with None for
            axes of any size. TensorFlow then makes one graph, at the first call. None if the
            function takes other arguments.
    """
    if keras.backend.backend() == "jax":
        return _compiled_by_jax(model, function)
    import tensorflow as tf

    def graph(**options: Any) -> Function:
        # TensorFlow warns of code that is traced often. Without `partial`, a method would count as
        # the same code for all objects and all shapes.
        return tf.function(functools.partial(function), autograph=False, **options)

    if specs is not None:
        return graph(input_signature=[{name: tf.TensorSpec(*one) for name, one in specs.items()}])
    if not jit_compile:
        return graph(reduce_retracing=True)
    graphs: dict[Any, Function] = {}

    def call(*arguments: Any) -> Any:
        shapes = tuple(tuple(array.shape) for array in keras.tree.flatten(arguments))
        if shapes not in graphs:
            graphs[shapes] = graph(jit_compile=True)
        return graphs[shapes](*arguments)

    return call


def _compiled_by_jax(model: Any, function: Function) -> Function:
    import jax

    @jax.jit
    def run(values: Any, *arguments: Any) -> Any:
        mapping = list(zip(model.variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return function(*arguments)

    return lambda *arguments: run([v.value for v in model.variables], *arguments)


def bfloat16_product(x: Any, y: Any) -> Any:
    """The product of bfloat16 matrices as float32, not rounded to bfloat16.

    This is the only kind of product for which XLA uses a CPU's bfloat16 units. TensorFlow's plain
    graph (without XLA) has no CPU kernel for it and multiplies the same operands as float32.
    """
    if keras.backend.backend() == "jax":
        import jax.numpy as jnp

        return jnp.matmul(x, y, preferred_element_type="float32")
    if not has_static_shapes():
        return ops.matmul(ops.cast(x, "float32"), ops.cast(y, "float32"))
    import tensorflow as tf

    return tf.raw_ops.BatchMatMulV3(x=x, y=y, Tout=tf.float32)


def gpu_name() -> str | None:
    """The name of the GPU that the backend computes on; None on a CPU."""
    if keras.backend.backend() == "jax":
        import jax

        device = jax.devices()[0]
        return device.device_kind if device.platform == "gpu" else None
    import tensorflow as tf

    for device in tf.config.get_visible_devices("GPU"):
        return tf.config.experimental.get_device_details(device).get("device_name", device.name)
    return None

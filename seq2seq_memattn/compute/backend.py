"""What differs between backends: shapes, compiled functions, products, devices."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from seq2seq_memattn.compute.private import is_traced_for_xla

Function = Callable[..., Any]

WIDTH_STEP = 16  # widths are padded to a multiple of this where each is compiled by itself


def has_static_shapes() -> bool:
    """Whether every shape must be known ahead: on JAX, and where XLA compiles for TensorFlow."""
    return keras.backend.backend() != "tensorflow" or is_traced_for_xla()


def is_compiled_for_cpu() -> bool:
    """Whether what is traced now is compiled by XLA, and for the processor."""
    return has_static_shapes() and gpu_name() is None


def is_eager(*arrays: Any) -> bool:
    """Whether arrays have values that can be seen: they are no part of a graph that is traced."""
    if keras.backend.backend() == "jax":
        import jax

        return not any(isinstance(array, jax.core.Tracer) for array in arrays)
    import tensorflow as tf

    return tf.executing_eagerly()


def compiled(model: Any, function: Function, jit_compile: bool = False) -> Function:
    """The graph of a function of structures of arrays.

    Args:
        model: the model that the function uses; its weights are read anew at each call.
        function: takes and returns structures of arrays.
        jit_compile: whether XLA compiles it, anew for each combination of shapes. Without, on
            TensorFlow, one graph serves them all. On JAX it always does.
    """
    if keras.backend.backend() == "jax":
        return _compiled_by_jax(model, function)
    import tensorflow as tf

    if not jit_compile:
        return tf.function(function, autograph=False, reduce_retracing=True)
    graphs: dict[Any, Function] = {}

    def call(*arguments: Any) -> Any:
        # A graph for each shape, as XLA needs it, without TensorFlow's warning that there are many.
        shapes = tuple(tuple(array.shape) for array in keras.tree.flatten(arguments))
        if shapes not in graphs:
            graphs[shapes] = tf.function(function, autograph=False, jit_compile=True)
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
    """The product of matrices of bfloat16 as float32, not rounded.

    XLA leaves such products, and no others of bfloat16, to a CPU's units for bfloat16. TensorFlow's
    plain graph has no kernel for them on CPUs: it multiplies the same operands as float32.
    """
    if keras.backend.backend() == "jax":
        import jax.numpy as jnp

        return jnp.matmul(x, y, preferred_element_type="float32")
    if not has_static_shapes():
        return ops.matmul(ops.cast(x, "float32"), ops.cast(y, "float32"))
    import tensorflow as tf

    return tf.raw_ops.BatchMatMulV3(x=x, y=y, Tout=tf.float32)


def gpu_name() -> str | None:
    """The GPU that the backend computes on; None if it is the processor."""
    if keras.backend.backend() == "jax":
        import jax

        device = jax.devices()[0]
        return device.device_kind if device.platform == "gpu" else None
    import tensorflow as tf

    for device in tf.config.list_physical_devices("GPU"):
        return tf.config.experimental.get_device_details(device).get("device_name", device.name)
    return None

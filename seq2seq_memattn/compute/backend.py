"""What the backend needs of shapes, and what it computes on."""

from typing import Any

import keras
from keras import ops
from keras.src.backend import get_keras_mask

WIDTH_STEP = 16  # widths are padded to a multiple of this where each is compiled by itself


def has_static_shapes() -> bool:
    """Whether every shape must be known ahead: on JAX, and where XLA compiles for TensorFlow."""
    return keras.backend.backend() != "tensorflow" or _is_traced_for_xla()


def is_compiled_for_cpu() -> bool:
    """Whether what is traced now is compiled by XLA, and for the processor."""
    return has_static_shapes() and gpu_name() is None


def _is_traced_for_xla() -> bool:
    """Whether some enclosing `tf.function` has `jit_compile=True`: XLA needs fixed shapes.

    TensorFlow marks what it traces then, but has no public name for asking.
    """
    import tensorflow as tf

    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    while graph is not None:
        context = graph._get_control_flow_context()
        while context is not None:
            if context.IsXLAContext():
                return True
            context = context.outer_context
        graph = getattr(graph, "outer_graph", None)
    return False


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


def attached_mask(x: Any) -> Any:
    """The mask that Keras attached to a tensor, or None.

    JAX's arrays take no attributes: Keras keeps their masks beside them and has no public name for
    asking.
    """
    return get_keras_mask(x)


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

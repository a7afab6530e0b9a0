"""Differences between backends: shapes, compiled functions, products, devices."""

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from seq2seq_memattn.compute.hardware import has_int8_units
from seq2seq_memattn.compute.private import is_traced_for_xla
from seq2seq_memattn.packages import BACKENDS, NAME

if keras.backend.backend() not in BACKENDS:
    raise ValueError(
        f"{NAME} runs on Keras with TensorFlow or JAX; got KERAS_BACKEND={keras.backend.backend()}"
    )

Function = Callable[..., Any]

WIDTH_STEP = 16  # widths are padded to a multiple of this where each shape is compiled


def has_static_shapes() -> bool:
    """Whether every shape must be known ahead: on JAX, and on TensorFlow under XLA."""
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


def compiled(model: Any, function: Function, jit_compile: bool = False) -> Function:
    """Compiles a function of structures of arrays.

    Args:
        model: the model that the function uses; its weights are read anew at each call.
        function: takes and returns structures of arrays.
        jit_compile: whether XLA compiles the function, once for each combination of shapes. If
            not, TensorFlow uses one graph for all shapes. On JAX, XLA always compiles.
    """
    if keras.backend.backend() == "jax":
        return _compiled_by_jax(model, function)
    import tensorflow as tf

    def graph(**options: Any) -> Function:
        # TensorFlow warns of code that is traced often. Without `partial`, the same method of all
        # objects, or of all shapes, would count as the same code.
        return tf.function(functools.partial(function), autograph=False, **options)

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

    XLA uses a CPU's bfloat16 units for these products only. TensorFlow's plain graph has no CPU
    kernel for them, so it multiplies the same operands as float32.
    """
    if keras.backend.backend() == "jax":
        import jax.numpy as jnp

        return jnp.matmul(x, y, preferred_element_type="float32")
    if not has_static_shapes():
        return ops.matmul(ops.cast(x, "float32"), ops.cast(y, "float32"))
    import tensorflow as tf

    return tf.raw_ops.BatchMatMulV3(x=x, y=y, Tout=tf.float32)


@functools.cache
def has_int8_kernel() -> bool:
    """Whether TensorFlow's plain graph multiplies int8 matrices faster than float32.

    oneDNN does on processors with VNNI. On others, it is slow, and its sums may overflow.
    """
    if keras.backend.backend() != "tensorflow" or gpu_name() is not None or not has_int8_units():
        return False
    import tensorflow as tf

    with tf.init_scope():  # not part of a graph that is being traced
        one = tf.ones([1, 1])
        sums = _int8_sums_by_onednn(one, one, one[0])
        return sums.numpy().tolist() == [[1.0]]  # without oneDNN, it is empty


def int8_sums(x: Any, y: Any, column_sums: Any) -> Any:
    """The product of two matrices of whole numbers in -127..127: float32 [rows, n].

    XLA multiplies them as int8, with sums in int32, and so does the plain graph of TensorFlow if
    `has_int8_kernel`. If not, the plain graph multiplies the same numbers as float32, which is
    exact for up to 1,040 terms.

    Args:
        x: float32 [rows, units].
        y: int8 or float32 [units, n].
        column_sums: float32 [n]. The sums of the columns of y.
    """
    if keras.backend.backend() == "jax":
        import jax.numpy as jnp

        sums = jnp.matmul(ops.cast(x, "int8"), y, preferred_element_type="int32")
        return ops.cast(sums, "float32")
    if not has_static_shapes():
        if has_int8_kernel():
            return _int8_sums_by_onednn(x, y, column_sums)
        return ops.matmul(x, ops.cast(y, "float32"))
    import tensorflow as tf

    sums = tf.matmul(tf.cast(x, tf.int8), y, output_type=tf.int32)
    return tf.cast(sums, tf.float32)


def _int8_sums_by_onednn(x: Any, y: Any, column_sums: Any) -> Any:
    """As `int8_sums`. The kernel takes uint8, so 128 is added to x and subtracted again."""
    import tensorflow as tf

    return tf.raw_ops.QuantizedMatMulWithBiasAndDequantize(
        a=tf.bitcast(tf.cast(x + 128.0, tf.uint8), tf.quint8),
        b=tf.bitcast(tf.cast(y, tf.int8), tf.qint8),  # loops cannot take qint8 from outside
        bias=-128.0 * column_sums,
        # With these ranges, both scales are 1.
        min_a=0.0,
        max_a=255.0,
        min_b=-127.0,
        max_b=127.0,
        min_freezed_output=0.0,  # not used: the result is float32
        max_freezed_output=1.0,
        Toutput=tf.float32,
        input_quant_mode="SCALED",
    )


def gpu_name() -> str | None:
    """The name of the GPU that the backend computes on; None on a CPU."""
    if keras.backend.backend() == "jax":
        import jax

        device = jax.devices()[0]
        return device.device_kind if device.platform == "gpu" else None
    import tensorflow as tf

    for device in tf.config.list_physical_devices("GPU"):
        return tf.config.experimental.get_device_details(device).get("device_name", device.name)
    return None

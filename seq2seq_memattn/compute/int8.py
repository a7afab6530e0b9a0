"""Eight-bit products for search: both operands are rounded to int8, and sums are int32.

No special training is needed. Each column of a matrix has its own scale, and each row of the inputs
gets a scale when it is multiplied. In standard cells, the states that are multiplied are bounded by
1, so a row has no outliers that would cost its other numbers their precision.
"""

import functools
from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.compute.backend import gpu_name, has_static_shapes
from seq2seq_memattn.compute.hardware import has_int8_units

LARGEST = 127  # not 128: a matrix and its negative then have the same magnitudes
LEAST_SCALE = 1e-30  # the scale of a slice of zeros


class Int8Matrix(NamedTuple):
    """A matrix to multiply by, rounded to eight bits: `values` times `scales`.

    Fields:
        values: int8 [units, n], or the same numbers as float32, see `outside_loops`.
        scales: float32 [1, n].
        column_sums: float32 [n]. The sums of the columns of `values`.
    """

    values: Any
    scales: Any
    column_sums: Any

    @property
    def shape(self) -> Any:
        """The matrix's shape."""
        return self.values.shape


def int8_matrix(matrix: Any) -> Int8Matrix:
    """Rounds a matrix, float [units, n]."""
    values, scales = rounded(matrix, axis=0)
    return Int8Matrix(ops.cast(values, "int8"), scales, ops.sum(values, axis=0))


def int8_product(x: Any, matrix: Int8Matrix) -> Any:
    """The product x @ matrix, with x rounded to int8 as well.

    Args:
        x: float [..., units].
        matrix: `Int8Matrix`.

    Returns:
        float [..., n], in the dtype of x.
    """
    units, n = matrix.shape
    rows, scales = rounded(ops.reshape(x, (-1, units)), axis=1)
    product = int8_sums(rows, matrix.values, matrix.column_sums) * scales * matrix.scales
    return ops.cast(ops.reshape(product, (*ops.shape(x)[:-1], n)), x.dtype)


def outside_loops(weights: Any) -> Any:
    """Converts int8 matrices to float32 before a loop that would convert them at each step.

    Only TensorFlow's plain graph without an int8 kernel needs float32 matrices; see `int8_sums`.
    """
    if has_static_shapes():
        return weights
    return keras.tree.map_structure(_int8_as_float32, weights)


def _int8_as_float32(array: Any) -> Any:
    is_int8 = keras.backend.standardize_dtype(array.dtype) == "int8"
    return ops.cast(array, "float32") if is_int8 and not has_int8_kernel() else array


def rounded(x: Any, axis: int) -> tuple[Any, Any]:
    """Rounds a matrix to whole numbers, with one scale for each slice along an axis.

    Args:
        x: float [rows, columns].
        axis: int. 0: one scale for each column. 1: one for each row.

    Returns:
        values: float32 [rows, columns]. Whole numbers in -127..127.
        scales: float32 [1, columns] or [rows, 1]. `values * scales` is `x`, rounded.
    """
    x = ops.cast(x, "float32")
    # In the plain graph, this is faster than absolute values and a division.
    highest, lowest = ops.max(x, axis=axis, keepdims=True), ops.min(x, axis=axis, keepdims=True)
    scales = ops.maximum(ops.maximum(highest, -lowest) / LARGEST, LEAST_SCALE)
    return ops.round(x * (1.0 / scales)), scales


@functools.cache
def has_int8_kernel() -> bool:
    """Whether TensorFlow's plain graph multiplies int8 matrices faster than float32.

    oneDNN's kernel is faster on processors with VNNI. On others, the kernel is slow and its sums
    may overflow.
    """
    if keras.backend.backend() != "tensorflow" or gpu_name() is not None or not has_int8_units():
        return False
    import tensorflow as tf

    with tf.init_scope():  # not part of a graph that is being traced
        one = tf.ones([1, 1])
        sums = _int8_sums_by_onednn(one, tf.cast(one, tf.int8), one[0])
        return sums.numpy().tolist() == [[1.0]]  # without oneDNN, the result is empty


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
    """Computes `int8_sums` with oneDNN's kernel, which takes its first matrix as uint8.

    Therefore, 128 is added to x, and 128 times `column_sums` is subtracted from the result.
    """
    import tensorflow as tf

    return tf.raw_ops.QuantizedMatMulWithBiasAndDequantize(
        a=tf.bitcast(tf.cast(x + 128.0, tf.uint8), tf.quint8),
        b=tf.bitcast(y, tf.qint8),  # here, because a loop cannot capture qint8 from outside
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

"""Dtype policies of models: Keras's own, one for CPUs with bfloat16 units, one with int8 products.

On a CPU, a policy such as "mixed_bfloat16" slows down everything except products and rounds the
states of cells at every step. `BFloat16Products` rounds only the operands of matrix products to
bfloat16, both in the loop over the steps and in the products computed for all steps before it.
Sums, states and gates stay float32.

Training also rounds the products themselves: TensorFlow's plain graph has no other fast bfloat16
products on CPUs. Decoding never rounds the products, so scores are the same with and without XLA.
Decoding under XLA uses a CPU's bfloat16 units. The plain graph, which exported models use,
multiplies the rounded operands as float32 and gains no speed.

`Int8Products` is only for search. `weights_for` rounds matrices once: those of the cells, of the
output layer and of the mixing layer, except for what search folds into the memory's rows (see
`search/folding.py`). The inputs that are multiplied by these matrices are rounded at each step.
"""

from typing import Any

import keras
from keras import ops

from seq2seq_memattn.compute.backend import bfloat16_product
from seq2seq_memattn.compute.int8 import Int8Matrix, int8_matrix, int8_product

NARROW = ("float16", "bfloat16")
INT8 = "int8_products"  # the precision that rounds to eight bits, in search and in exports


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class BFloat16Products(keras.DTypePolicy):
    """Dtype policy: float32, but the operands of large products are rounded to bfloat16.

    In training, only the products of cells follow this policy, and their results are rounded to
    bfloat16 too. Search also rounds the operands of the products with the mixing layer, the output
    layer and the memory's rows. Any other layer treats the policy as float32.
    """

    product_dtype = "bfloat16"

    def __init__(self, name: str = "float32") -> None:
        super().__init__(name)


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class Int8Products(keras.DTypePolicy):
    """Dtype policy: float32, but the products of cells and output layer are computed in int8."""

    rounds_to_int8 = True

    def __init__(self, name: str = "float32") -> None:
        super().__init__(name)


def dtype_policy(precision: str) -> keras.DTypePolicy:
    """The dtype policy for a precision, which is one of the names in `DecodingPrecision`.

    Raises:
        ValueError: if the precision is float64 and JAX has it turned off.
    """
    if precision == "bfloat16_products":
        return BFloat16Products()
    if precision == INT8:
        return Int8Products()
    if precision == "float64" and keras.backend.backend() == "jax":
        import jax

        if not jax.config.jax_enable_x64:
            raise ValueError("Precision float64 on JAX needs JAX_ENABLE_X64=1 in the environment.")
    return keras.DTypePolicy(precision)


def at_least_float32(x: Any) -> Any:
    """`x` in float32 if its floating-point dtype is narrower, else unchanged."""
    is_narrow = keras.backend.standardize_dtype(x.dtype) in NARROW
    return ops.cast(x, "float32") if is_narrow else x


def product_dtype(layer: Any) -> str:
    """The dtype of the operands of a layer's products."""
    return getattr(layer.dtype_policy, "product_dtype", layer.compute_dtype)


def rounds_to_int8(layer: Any) -> bool:
    """Whether a layer's products are computed in int8."""
    return getattr(layer.dtype_policy, "rounds_to_int8", False)


def rounds_products(layer: Any) -> bool:
    """Whether a layer's products have other operands than its dtype policy gives its weights."""
    return rounds_to_int8(layer) or product_dtype(layer) != layer.compute_dtype


def weights_for(layer: Any, matrix: Any) -> Any:
    """A matrix in the form that loops multiply by: rounded as the layer's dtype policy says."""
    if rounds_to_int8(layer):
        return int8_matrix(matrix)
    return ops.cast(matrix, product_dtype(layer))


def product(x: Any, weights: Any, training: bool = False) -> Any:
    """The product x @ weights, with both operands in the dtype of the weights.

    Args:
        x: float [..., units].
        weights: float [units, n], or [..., units, n]; or `Int8Matrix`.
        training: bool. Whether the product may also be rounded to the dtype of the weights, which
            is fastest on CPUs with bfloat16 units. If not, only the operands are rounded.

    Returns:
        float [..., n], in the dtype of x.
    """
    if isinstance(weights, Int8Matrix):
        return int8_product(x, weights)
    dtypes = tuple(keras.backend.standardize_dtype(array.dtype) for array in (x, weights))
    rounded = ops.cast(x, weights.dtype)
    if dtypes == ("float32", "bfloat16") and not training:
        return bfloat16_product(rounded, weights)
    return ops.cast(ops.matmul(rounded, weights), x.dtype)

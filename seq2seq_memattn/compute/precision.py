"""How precisely a model computes: Keras's dtype policies, and one for CPUs with bfloat16 units.

On a CPU a policy such as "mixed_bfloat16" slows everything but the products down, and rounds the
states of cells at every step. Here only the operands of the products inside loops and ahead of
them are rounded; sums, states and gates stay float32.

Training rounds these products too: TensorFlow's plain graph has no other fast ones of bfloat16 on
CPUs. Decoding does not, whatever computes it, so that scores are the same with and without XLA.
XLA uses a CPU's units for bfloat16; the plain graph, which exported models are, multiplies rounded
operands as float32 and gains no speed.
"""

from typing import Any

import keras
from keras import ops

from seq2seq_memattn.compute.backend import bfloat16_product


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class BFloat16Products(keras.DTypePolicy):
    """float32 but for the operands of large products, which are rounded to bfloat16.

    The cells' products follow it, and are rounded themselves in training alone; any other layer
    takes it as float32.
    """

    product_dtype = "bfloat16"

    def __init__(self, name: str = "float32") -> None:
        super().__init__(name)


def dtype_policy(precision: str) -> keras.DTypePolicy:
    """The policy that `TrainingConfig.precision` names."""
    if precision == "bfloat16_products":
        return BFloat16Products()
    return keras.DTypePolicy(precision)


def at_least_float32(x: Any) -> Any:
    """Floating-point numbers, widened to float32 if they are narrower."""
    is_narrow = keras.backend.standardize_dtype(x.dtype) in ("float16", "bfloat16")
    return ops.cast(x, "float32") if is_narrow else x


def product_dtype(layer: Any) -> str:
    """The dtype of the operands of a layer's products."""
    return getattr(layer.dtype_policy, "product_dtype", layer.compute_dtype)


def product(x: Any, weights: Any, training: bool = False) -> Any:
    """The product x @ weights, of operands in the dtype of the weights.

    Args:
        x: float [..., units].
        weights: float [units, n], or [..., units, n].
        training: bool. Whether the product may be rounded to the dtype of the weights, as it is
            where processors multiply bfloat16 fastest; otherwise operands alone are rounded.

    Returns:
        float [..., n], in the dtype of x.
    """
    dtypes = tuple(keras.backend.standardize_dtype(array.dtype) for array in (x, weights))
    rounded = ops.cast(x, weights.dtype)
    if dtypes == ("float32", "bfloat16") and not training:
        return bfloat16_product(rounded, weights)
    return ops.cast(ops.matmul(rounded, weights), x.dtype)

"""Weights of exported models in eight bits: int8 in the file, float32 once a model is loaded.

A SavedModel restores variables and then initialises its resources. The float32 matrices are such
resources, so a graph reads them as if they were variables, and rounding costs nothing at each call.

TensorFlow keeps a resource until it is destroyed. It is not destroyed with the loaded model, since
a signature may outlive the model. A server destroys the resources of a version that it unloads.
"""

import uuid
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from seq2seq_memattn.compute.int8 import rounded


class RoundedMatrix(tf.saved_model.experimental.TrackableResource):
    """A matrix that is stored in eight bits; `tf.convert_to_tensor` reads it as float32.

    Args:
        matrix: float [rows, columns].

    Attributes:
        variables: values int8 [rows, columns] and scales float32. The object that is saved must
            track them.
    """

    def __init__(self, matrix: Any) -> None:
        super().__init__()
        values, scales = _better_rounded(np.asarray(matrix))
        self.variables = [
            tf.Variable(values, trainable=False),
            tf.Variable(scales, trainable=False),
        ]
        # Models that are loaded side by side would share a resource of the same name. (TensorFlow 2
        # adds a number to the name at each load, but sessions of TensorFlow 1 keep it.)
        self._name = f"rounded_{uuid.uuid4().hex}"
        _ = self.resource_handle  # made now, not inside the first graph that reads it
        self._initialize()

    def _create_resource(self) -> Any:
        shape = self.variables[0].shape
        return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=shape, shared_name=self._name)

    def _initialize(self) -> None:
        values, scales = self.variables
        matrix = tf.cast(values, tf.float32) * scales
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=matrix)

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        del dtype, name
        matrix = tf.raw_ops.ReadVariableOp(resource=self.resource_handle, dtype=tf.float32)
        return tf.ensure_shape(matrix, self.variables[0].shape)


class RoundedWeights(keras.StatelessScope):
    """A scope in which reading a model's matrices gives their rounded values.

    Args:
        variables: the model's variables.

    Attributes:
        matrices: every `RoundedMatrix` that was made.
    """

    def __init__(self, variables: Iterable[Any]) -> None:
        super().__init__()
        self.matrices: list[RoundedMatrix] = []
        # Read now: inside the scope, a variable's value is what the scope says.
        self._values = {id(each): np.asarray(each) for each in variables if is_rounded(each)}
        self._of_variables: dict[int, RoundedMatrix] = {}

    def stored(self, array: Any) -> Any:
        """A float array as it is stored: a `RoundedMatrix`, or a variable if it is no matrix."""
        if not is_rounded(array):
            return tf.Variable(array, trainable=False)
        self.matrices.append(RoundedMatrix(array))
        return self.matrices[-1]

    def get_current_value(self, variable: Any) -> Any:
        if id(variable) not in self._values:
            return super().get_current_value(variable)
        if id(variable) not in self._of_variables:
            with tf.init_scope():
                self._of_variables[id(variable)] = self.stored(self._values[id(variable)])
        return tf.convert_to_tensor(self._of_variables[id(variable)])


def is_rounded(array: Any) -> bool:
    """Whether an array or variable is stored in eight bits.

    Float32 matrices are, except those with at most two rows or columns, which would save nothing. A
    GRU's biases are such a matrix.
    """
    is_matrix = len(array.shape) == 2 and min(array.shape) > 2
    return is_matrix and keras.backend.standardize_dtype(array.dtype) == "float32"


def _better_rounded(matrix: Any) -> tuple[Any, Any]:
    """Rounds a matrix with one scale per row or one per column, whichever is more accurate."""
    found = [tuple(np.asarray(array) for array in rounded(matrix, axis)) for axis in (0, 1)]
    values, scales = min(found, key=lambda pair: float(np.square(pair[0] * pair[1] - matrix).sum()))
    return values.astype(np.int8), scales

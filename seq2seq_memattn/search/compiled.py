"""Functions over the weights of a model, compiled on either backend."""

from collections.abc import Callable
from typing import Any

import keras

Function = Callable[..., Any]


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

"""Traces a call of layers, which creates their weights."""

from collections.abc import Callable
from typing import Any

import keras

from seq2seq_memattn.compute.private import forgetting_variables_on_error


def trace(call: Callable[..., Any], *specs: Any) -> None:
    """Traces a call, which builds the layers that it uses; this is faster than running it.

    Args:
        call: the function.
        specs: its arguments, structures of `keras.KerasTensor`.

    Raises:
        Exception: what `call` raises, without the text that Keras adds.
    """
    traced = _Traced(call)
    filtering = keras.config.is_traceback_filtering_enabled()
    keras.config.disable_traceback_filtering()  # filtering adds all arguments to errors
    try:
        with forgetting_variables_on_error():
            traced.compute_output_spec(*specs)
    except Exception:
        if traced.problem is None:
            raise
        raise traced.problem from None
    finally:
        if filtering:
            keras.config.enable_traceback_filtering()


class _Traced(keras.Operation):
    """A Keras operation that calls a function and keeps the error that the function raises."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.problem: Exception | None = None

    def call(self, *arguments: Any) -> Any:
        try:
            return self.function(*arguments)
        except Exception as problem:
            self.problem = problem
            raise

"""Checks of ids."""

from typing import Any

import keras
import numpy as np
from keras import ops

from seq2seq_memattn.compute.visible import checked, is_visible


def has_ids(source: Any) -> bool:
    """Whether the checked sources of a search are ids; if not, they are features."""
    return len(source.shape) == 2 and "int" in str(source.dtype)


def to_int32(ids: Any) -> Any:
    """Ids as int32. Larger whole numbers become the largest one instead of another id."""
    limits, of = np.iinfo(np.int32), np if isinstance(ids, np.ndarray) else ops
    dtype = keras.backend.standardize_dtype(ids.dtype)
    if dtype == "int64":
        ids = of.clip(ids, limits.min, limits.max)
    elif dtype in ("uint32", "uint64"):
        ids = of.minimum(ids, np.asarray(limits.max, dtype))
    return ops.cast(ids, "int32")


def ids_below(name: str, ids: Any, bound: int) -> Any:
    """Checks that ids belong to a vocabulary, if their values can be seen.

    Values can be seen in NumPy arrays, in eager mode and in plain TensorFlow graphs. Compiled code
    (`jax.jit`, XLA) is not checked: its results for ids out of range have no meaning.

    Args:
        name: name of the argument, for the message.
        ids: int, any shape.
        bound: int > 0. The size of the vocabulary.

    Returns:
        `ids`. In a graph, operations that use the result wait for the check.

    Raises:
        ValueError: in eager mode, if an id is out of range. In a graph, the check instead raises
            `tf.errors.InvalidArgumentError` when the graph runs.
    """
    problem = f"`{name}`: expected ids in 0..{bound - 1}"
    # As unsigned numbers, negative ids are the largest: one maximum finds all bad ids.
    if isinstance(ids, np.ndarray):
        largest = np.max(ids.astype(np.int64).astype(np.uint64), initial=0)
        if largest >= bound:
            raise ValueError(f"{problem}; got {largest.astype(np.int64)}.")
        return ids
    if not is_visible(ids):
        return ids
    largest = ops.max(ops.cast(to_int32(ids), "uint32"), initial=0)
    return checked(ids, largest < bound, problem, got=ops.cast(largest, "int32"))

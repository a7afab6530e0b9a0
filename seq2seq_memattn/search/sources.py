"""Checks of what a search gets as sources: ids, or features such as images or speech."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from seq2seq_memattn.checks import check_rank
from seq2seq_memattn.compute.ids import has_ids, ids_below, to_int32
from seq2seq_memattn.compute.padding import no_longer_than
from seq2seq_memattn.search.ensemble import members
from seq2seq_memattn.vocabulary import PAD_ID


def checked_source(source: Any, ours: Any) -> Any:
    """Checks sources and returns them as a tensor: int32 if they are ids.

    Args:
        source: see `beam_search`.
        ours: the model if it is one of our own, or None.
    """
    source = _as_array("source", source)
    models = [] if ours is None else members(ours)
    has_more_axes = ours is None and len(source.shape) > 2
    if has_more_axes or any(_reads_features(model, source) for model in models):
        return _checked_features(source, models)
    source = as_ids("source", source)
    if ours is not None and ours.source_vocab_size is not None:
        source = ids_below("source", source, ours.source_vocab_size)
    check_rank("source", source, ("batch", "source_length"))
    if source.shape[1] == 0:  # recurrent layers need a step
        source = ops.full((source.shape[0], 1), PAD_ID if ours is None else ours.pad_id, "int32")
    if ours is not None and ours.longest_source is not None:
        real = ops.not_equal(source, ours.pad_id)
        source = no_longer_than("source", source, real, ours.longest_source)
    return source


def as_ids(name: str, ids: Any) -> Any:
    """Ids as an int32 tensor; ValueError if rows differ in length or numbers are not integers."""
    ids = _as_array(name, ids)
    if "int" not in str(ids.dtype) and 0 not in ids.shape:
        raise ValueError(f"`{name}`: expected ids, whole numbers; got {ids.dtype}.")
    if isinstance(ids, np.ndarray):
        limits = np.iinfo(np.int32)  # the conversion would change ids beyond them
        for one in (ids.min(initial=0), ids.max(initial=0)):
            if not limits.min <= one <= limits.max:
                raise ValueError(f"`{name}`: expected ids that fit into 32 bits; got {one}.")
    return to_int32(ids)


def free_shape(source: Any, first_shape: Sequence[int | None], ours: Any) -> tuple[int | None, ...]:
    """The shape of sources that one graph can serve; None for axes of any size.

    A batch of one has a graph of its own.

    Args:
        source: checked sources.
        first_shape: the shape of those for which the first graph was made.
        ours: the model, one of our own.
    """
    batch = 1 if source.shape[0] == 1 else None
    if has_ids(source):
        return batch, None
    # An encoder may need sizes that it does not declare, such as those of images. Of these, only
    # the length of [batch, length, n] is taken to vary.
    inputs = [model.source_input for model in members(ours)]
    free = [batch]
    for axis, size in enumerate(source.shape[1:], 1):
        is_declared = all(one is not None and one.shape[axis] is None for one in inputs)
        is_length = len(source.shape) == 3 and axis == 1 and size != first_shape[axis]
        free.append(None if is_declared or is_length else size)
    return tuple(free)


def _as_array(name: str, x: Any) -> Any:
    uneven = f"`{name}`: expected rows of the same length, with padding."
    if hasattr(x, "to_tensor"):  # a ragged tensor
        raise ValueError(uneven)
    if isinstance(x, (list, tuple)):
        try:
            x = np.array(x)
        except ValueError:
            raise ValueError(uneven) from None
    if not hasattr(x, "dtype"):
        raise ValueError(f"`{name}`: expected rows of ids; got {x!r}.")
    return x


def _reads_features(model: Any, source: Any) -> bool:
    """Whether one of our own models reads features: `source`, or what it should have been."""
    declared = model.source_input
    if declared is not None and len(declared.shape) > 2:
        return True
    if model.source_vocab_size is not None:
        return False
    if declared is None:
        return len(source.shape) > 2
    # An input of ids, read by a layer that is no `Embedding`, may have been declared as floats.
    is_empty = 0 in source.shape[1:]
    return "float" in declared.dtype and "int" not in str(source.dtype) and not is_empty


def _checked_features(source: Any, models: Sequence[Any]) -> Any:
    """Checks features against what the encoders declare; returns them as a tensor."""
    dtype = str(getattr(source.dtype, "name", source.dtype))
    if not any(kind in dtype for kind in ("float", "int", "bool")):
        raise ValueError(f"`source`: expected numbers; got {dtype}.")
    found = list(source.shape)
    for model in models:
        declared = model.source_input
        wanted = [None] * len(found) if declared is None else list(declared.shape)
        if len(wanted) != len(found) or not all(map(_fits, found[1:], wanted[1:])):
            sizes = ["batch", *("1 or more" if one is None else str(one) for one in wanted[1:])]
            raise ValueError(f"`source`: expected shape [{', '.join(sizes)}]; got {found}.")
        if model.source_vocab_size is not None:
            source = ids_below("source", as_ids("source", source), model.source_vocab_size)
        limit = model.cell.attention.longest_source
        count = model.num_outputs(found[1:], source.dtype) if limit else None
        if limit and count and limit < count < math.inf:
            raise ValueError(
                f"`source`: expected at most {limit} encoder outputs, as the attention's "
                f"`max_source_length` demands; got sources of shape {found[1:]}."
            )
    if isinstance(source, np.ndarray) and source.dtype == np.float64:
        source = source.astype(keras.config.floatx())
    return ops.convert_to_tensor(source)


def _fits(size: int | None, wanted: int | None) -> bool:
    return size is None or (size > 0 and wanted in (None, size))

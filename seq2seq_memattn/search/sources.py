"""Checks of what a search gets as sources: ids, or features such as images or speech."""

from typing import Any

import keras
import numpy as np
from keras import ops

from seq2seq_memattn.checks import check_rank
from seq2seq_memattn.compute.ids import ids_below, to_int32
from seq2seq_memattn.compute.padding import no_longer_than
from seq2seq_memattn.vocabulary import PAD_ID


def has_ids(source: Any) -> bool:
    """Whether checked sources are ids; if not, they are features."""
    return len(source.shape) == 2 and "int" in str(source.dtype)


def checked_source(source: Any, ours: Any) -> Any:
    """Checks sources and returns them as a tensor: ids as int32, features in the encoder's dtype.

    Args:
        source: see `beam_search`.
        ours: the model if it is one of our own, or None.
    """
    source = _as_array("source", source)
    if _is_for_features(ours, source):
        return _checked_features(source, None if ours is None else ours.source_input)
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


def free_shape(source: Any, ours: Any) -> list[int | None]:
    """The shape of sources that one graph can serve; None for axes of any size.

    Args:
        source: checked sources, of which the encoder reads the rank and the sizes of features.
        ours: the model, one of our own.
    """
    if has_ids(source):
        return [None, None]
    declared = ours.source_input
    known = source.shape[2:] if declared is None else declared.shape[1:]
    return [None] * (len(source.shape) - len(known)) + list(known)


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


def _is_for_features(ours: Any, source: Any) -> bool:
    """Whether the model reads features: `source`, or what `source` should have been."""
    if ours is not None and ours.source_vocab_size is not None:
        return False
    declared = None if ours is None else ours.source_input
    if declared is None:
        return len(source.shape) > 2
    # An input of ids, read by a layer that is no `Embedding`, may have been declared as floats.
    return len(declared.shape) > 2 or all("float" in str(x.dtype) for x in (declared, source))


def _checked_features(source: Any, declared: Any) -> Any:
    """Checks features against the encoder's input, or None if that is unknown."""
    dtype = str(getattr(source.dtype, "name", source.dtype))
    if not any(kind in dtype for kind in ("float", "int", "bool")):
        raise ValueError(f"`source`: expected numbers; got {dtype}.")
    wanted = [None] * len(source.shape) if declared is None else list(declared.shape)
    fits = len(wanted) == len(source.shape) and all(
        found is None or (found > 0 and size in (None, found))
        for size, found in zip(wanted[1:], source.shape[1:], strict=True)
    )
    if not fits:
        sizes = ", ".join(["batch", *("any" if one is None else str(one) for one in wanted[1:])])
        raise ValueError(f"`source`: expected shape [{sizes}]; got {list(source.shape)}.")
    if declared is not None:
        dtype = declared.dtype
    elif "float" in dtype:
        dtype = keras.config.floatx()
    return ops.convert_to_tensor(source, dtype=dtype)

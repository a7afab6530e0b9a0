"""Compiles searches that are called in eager mode, once for each model and choice of options."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from seq2seq_memattn.checks import check_rank
from seq2seq_memattn.compute.backend import compiled, is_eager
from seq2seq_memattn.compute.ids import ids_below
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.search.rules import checked_limits
from seq2seq_memattn.search.searchable import Searchable


def call_compiled(
    search: Callable[..., Any],
    model: Any,
    arrays: tuple[Any, ...],
    max_length: Any,
    options: tuple[Any, ...],
) -> Any:
    """Calls search(model, *arrays, max_length, *options), compiled if it would run eagerly.

    Run operation by operation, a search with a small model takes many times as long.

    Args:
        search: the function. It must not store what it computes from the arrays.
        model: the model to search with. Search is compiled only with a `Seq2Seq` or a
            `Searchable`, since the weights of other models are unknown.
        arrays: int32. The sources, [batch, source_length], and other arrays of the search.
        max_length: int, None, or int32 [batch], not yet checked.
        options: hashable. A graph is made for each choice of them.
    """
    arrays = tuple(ops.convert_to_tensor(array, dtype="int32") for array in arrays)
    is_ours = isinstance(model, (Seq2Seq, Searchable))
    if is_ours and model.source_vocab_size is not None:
        arrays = (ids_below("source", arrays[0], model.source_vocab_size), *arrays[1:])
    if is_eager(*arrays):
        check_rank("source", arrays[0], ("batch", "source_length"))
    max_length = checked_limits(max_length, arrays[0].shape[0])
    has_limits = not (max_length is None or isinstance(max_length, int))
    # JAX must know the most steps ahead, which an array inside a graph does not tell.
    if not is_ours or not is_eager(*arrays) or (has_limits and keras.backend.backend() == "jax"):
        return search(model, *arrays, max_length, *options)
    # `quantize` and `enable_lora` add variables. An older graph would read the old ones alone.
    num_variables = len(model.variables)
    key = (search, "each" if has_limits else max_length, options, num_variables)
    searches = vars(model).setdefault("_searches", {})  # Keras would track what is assigned
    if key not in searches:

        def run(arrays: Any, limits: Any) -> Any:
            return search(model, *arrays, limits if has_limits else max_length, *options)

        searches[key] = compiled(model, run)
    return searches[key](arrays, max_length if has_limits else ())

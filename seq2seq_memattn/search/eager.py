"""Compiles searches that are called in eager mode, once for each model and choice of options."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from seq2seq_memattn.checks import check_int, check_rank, check_size, is_int_array
from seq2seq_memattn.compute.backend import compiled, is_eager
from seq2seq_memattn.compute.ids import has_ids, ids_below
from seq2seq_memattn.compute.visible import checked, is_visible
from seq2seq_memattn.search.prepare import OURS
from seq2seq_memattn.search.rules import prefix_lengths
from seq2seq_memattn.search.sources import as_ids, checked_source, free_shape
from seq2seq_memattn.vocabulary import END_ID, PAD_ID


class Inputs(NamedTuple):
    """The arguments of `beam_search` and `sample` that concern the sources of a batch.

    Fields:
        source: ids, int32 [batch, source_length], or features, [batch, ...].
        max_length, min_length: None, int, or int32 [batch] or []; see `beam_search`.
        prefix: int32 [batch, n], or None. After `_checked`: search's tokens, see `Preparable`, in
            place of ids, and () in place of None.
        seed: int32 scalar, or None.
        most_steps: int or None. The maximum of `max_length`, which JAX must know to compile.
    """

    source: Any
    max_length: Any = None
    min_length: Any = None
    prefix: Any = None
    seed: Any = None
    most_steps: int | None = None


def call_compiled(
    search: Callable[..., Any],
    model: Any,
    inputs: Inputs,
    options: tuple[Any, ...],
    with_xla: Callable[..., Any] | None = None,
) -> Any:
    """Calls search(model, inputs, *options), compiled if it would run eagerly.

    Run operation by operation, a search with a small model takes many times as long.

    Args:
        search: the function. It must not store what it computes from the inputs.
        model: the model to search with. The search is compiled only for our own models (`OURS`),
            since the weights of other models are unknown.
        inputs: `Inputs`, not yet checked.
        options: hashable. A graph is made for each choice of them.
        with_xla: function that takes the arguments of `search` and compiles the steps with XLA.
            None: without XLA.

    Raises:
        ValueError: if an input is wrong; with `with_xla`, if the model is not one of our own, or
            inside a graph.
    """
    is_ours = isinstance(model, OURS)
    inputs = _checked(inputs, model if is_ours else None)
    limits, is_jax = inputs.max_length, keras.backend.backend() == "jax"
    if is_jax and ops.is_tensor(limits) and is_eager(limits):
        # With NumPy: under `jax.jit`, JAX would compute even with a known array only later.
        inputs = inputs._replace(most_steps=int(np.max(np.asarray(limits), initial=0)))
    # Lengths that are the same for all sources are constants of the graph.
    given = {name: x for name, x in inputs._asdict().items() if ops.is_tensor(x)}
    fixed = {name: x for name, x in inputs._asdict().items() if name not in given}
    is_outside = is_eager(*given.values())
    if with_xla is not None:
        # Under `jax.jit`, a captured array is eager, but what is computed from it is not.
        _check_for_xla(model, is_outside and is_eager(ops.zeros_like(inputs.source)))
        if inputs.source.shape[0]:
            return with_xla(model, inputs, *options)
    if not is_ours or not is_outside:
        return search(model, inputs, *options)

    def run(given: Any) -> Any:
        return search(model, Inputs(**given, **fixed), *options)

    key: tuple[Any, ...] = (search, tuple(fixed.items()), options, len(inputs.source.shape))
    # The first graph has fixed shapes, so that an error can name the sizes that do not fit.
    shapes = {name: tuple(x.shape) for name, x in given.items()}
    first_shapes, graph = kept_search(model, key, lambda: (shapes, compiled(model, run)))
    if shapes != first_shapes:
        # One more graph serves all other shapes, and another serves single sources, since finished
        # sentences are never removed from a batch of one.
        free: dict[str, tuple[int | None, ...]]
        free = {name: (None,) * len(shape) for name, shape in shapes.items()}
        free["source"] = free_shape(inputs.source, first_shapes["source"], model)
        specs = {
            name: (shape, keras.backend.standardize_dtype(given[name].dtype))
            for name, shape in free.items()
        }
        key = (*key, *specs.values())
        graph = kept_search(model, key, lambda: compiled(model, run, specs=specs))
    return graph(given)


def _check_for_xla(model: Any, is_outside_graphs: bool) -> None:
    if not isinstance(model, OURS):
        kinds = ", ".join(kind.__name__ for kind in OURS)
        raise ValueError(
            f"`jit_compile`: expected the model to be one of {kinds}; got {type(model).__name__}."
        )
    if not is_outside_graphs:
        raise ValueError(
            "`jit_compile`: expected a call outside graphs; compile the graph instead."
        )


def kept_search(model: Any, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """The compiled search of a model for a key, made by `make` at the first call and then kept."""
    # `quantize` and `enable_lora` add variables. An older graph would not read the new variables.
    key = (*key, len(model.variables))
    searches = vars(model).setdefault("_searches", {})  # not by assignment, which Keras would track
    if key not in searches:
        searches[key] = make()
    return searches[key]


def _checked(inputs: Inputs, ours: Any) -> Inputs:
    """Checks the inputs; returns them as tensors, with search's tokens in the prefix.

    Args:
        inputs: `Inputs`.
        ours: the model if it is one of our own, or None.
    """
    source = checked_source(inputs.source, ours)
    if inputs.max_length is None and not has_ids(source):
        raise ValueError(
            "`max_length`: expected a number of steps, because sources of features have no ids to "
            "count; got None."
        )
    batch, prefix, seed = source.shape[0], inputs.prefix, inputs.seed
    max_length = _checked_lengths("max_length", inputs.max_length, batch, least=1)
    if prefix is not None:
        prefix = as_ids("prefix", prefix)
        check_rank("prefix", prefix, ("batch", "length"))
        check_size("prefix", "batch", prefix.shape[0], batch)
        if ours is not None:
            prefix = ours.to_tokens(ids_below("prefix", prefix, ours.vocab_size))
        prefix = _checked_prefix(prefix, max_length)
    return Inputs(
        source=source,
        max_length=max_length,
        min_length=_checked_lengths("min_length", inputs.min_length, batch, least=0),
        prefix=() if prefix is None or prefix.shape[1] == 0 else prefix,
        seed=None if seed is None else ops.convert_to_tensor(seed, dtype="int32"),
    )


def _checked_lengths(name: str, value: Any, batch: int | None, least: int) -> Any:
    """Checks lengths: one length for all sources, or one for each source.

    The values of an array or a list are checked only if `is_visible` is true for them.

    Args:
        name: the argument's name.
        value: None, an int, or integers [batch] or [], as an array or a list.
        batch: int or None. The number of sources, if it is known.
        least: int. The minimum length.

    Returns:
        None or an int, as given, or an int32 tensor with the shape of `value`.

    Raises:
        ValueError: if `value` is anything else, or a length is below `least`.
    """
    if value is None:
        return None
    lengths = np.asarray(value) if isinstance(value, (list, tuple)) else value
    if not is_int_array(lengths, most_axes=1):
        return check_int(name, value, least)
    if len(lengths.shape):
        check_size(name, "batch", lengths.shape[0], batch)
    lengths = ops.convert_to_tensor(lengths, dtype="int32")
    if not is_visible(lengths):
        return lengths
    smallest = ops.min(lengths, initial=np.iinfo(np.int32).max)
    problem = f"`{name}`: expected lengths of at least {least}"
    return checked(lengths, smallest >= least, problem, got=smallest)


def _checked_prefix(prefix: Any, max_length: Any) -> Any:
    """Checks the prefixes of a search, if their values are visible.

    Args:
        prefix: int32 [batch, n]. Search's tokens, see `Preparable`, in place of ids.
        max_length: None, int, or int32 [batch] or [].

    Returns:
        `prefix`.

    Raises:
        ValueError: if a token follows padding or is a start or end token, or if a prefix is longer
            than `max_length`.
    """
    if not is_visible(prefix):
        return prefix
    is_token = ops.not_equal(prefix, PAD_ID)
    prefix = checked(
        prefix,
        ops.all(ops.logical_or(is_token[:, :-1], ops.logical_not(is_token[:, 1:]))),
        "`prefix`: expected tokens, then padding; a token follows padding",
    )
    prefix = checked(
        prefix,
        ops.all(ops.logical_or(prefix == PAD_ID, prefix > END_ID)),
        "`prefix`: expected neither the start token nor the end token",
    )
    if max_length is None:
        return prefix
    fits = ops.all(prefix_lengths(prefix) <= ops.cast(max_length, "int32"))
    return checked(prefix, fits, "`prefix`: expected at most `max_length` tokens")

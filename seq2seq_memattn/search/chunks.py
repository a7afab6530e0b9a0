"""The outer loop of every search: take a chunk of steps, remove finished sentences, repeat.

A policy says which sentences are removed and what runs the loop. `keep_all` keeps the whole batch,
because XLA and JAX need fixed shapes. `drop_done` removes finished sentences inside a TensorFlow
graph. `compiled_search.py` has a third policy, whose loop runs in Python.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.search.step import Beam, Written, first_beam, nothing_written

KEPT_CHUNK = 32  # steps of a chunk in a search that never removes sentences
DROPPING_CHUNK = 8  # steps between two checks for finished sentences
WORTH = 0.75  # share of a batch; if more is unfinished, removing the rest is not worth a copy


class Unfinished(NamedTuple):
    """The n sentences that are still in a search.

    Fields:
        rows: int32 [n]. The sentences' places in the batch.
        memory: the model's; see `SearchedModel`.
        state: `BeamState`.
        beam: `Beam`.
    """

    rows: Any
    memory: Any
    state: Any
    beam: Any


class Results(NamedTuple):
    """The results so far of all sentences of a batch.

    Fields:
        beam: `Beam`. A removed sentence keeps the beam that it had when it was removed.
        written: `Written` of every chunk, [chunks, batch, beam, ...].
    """

    beam: Beam
    written: Written


class Compaction(NamedTuple):
    """A policy for finished sentences.

    Fields:
        chunk: int > 0. Steps between two checks for finished sentences.
        loop: (goes_on, body, start) -> what `body` returned last; see `ops.while_loop`.
        put: (found, index, rows, beam, written) -> `found`, updated with the `beam` and `written`
            of the sentences `rows` after chunk `index`.
        keep: (unfinished, done) -> `Unfinished` without the sentences that the policy removes, and
            whether any sentence is not done yet.
        drops: bool. Whether `keep` ever removes sentences.
    """

    chunk: int
    loop: Callable[..., Any]
    put: Callable[..., Results]
    keep: Callable[..., tuple[Unfinished, Any]]
    drops: bool


def search_by_chunks(
    extend: Callable[..., tuple[Any, ...]],
    unfinished: Unfinished,
    found: Results,
    num_steps: Any,
    compaction: Compaction,
) -> Results:
    """Searches until all sentences are done.

    Args:
        extend: (unfinished, step) -> what `extend_beam` returns.
        unfinished: all sentences, before the first step.
        found: their results before the first step; see `first_results`.
        num_steps: int or int32 scalar. The maximum number of steps.
        compaction: the policy.
    """
    structures = unfinished, found

    def goes_on(step: Any, is_left: Any, *_: Any) -> Any:
        return (step < num_steps) & is_left

    def body(step: Any, is_left: Any, *arrays: Any) -> Any:
        del is_left
        unfinished, found = map(keras.tree.pack_sequence_as, structures, arrays)
        index = step // compaction.chunk
        step, beam, state, written, done = extend(unfinished, step)
        found = compaction.put(found, index, unfinished.rows, beam, written)
        unfinished, is_left = compaction.keep(unfinished._replace(state=state, beam=beam), done)
        return step, is_left, keras.tree.flatten(unfinished), keras.tree.flatten(found)

    start = np.int32(0), np.True_, *map(keras.tree.flatten, structures)
    return keras.tree.pack_sequence_as(found, compaction.loop(goes_on, body, start)[-1])


def first_results(batch: Any, options: SearchOptions, num_steps: Any, chunk: int) -> Results:
    """The results with which a search begins: no tokens, and room for those of `num_steps`."""
    shape = (-(-num_steps // chunk), batch, options.beam_size)
    return Results(first_beam(batch, options), nothing_written(shape, chunk))


def keep_all(num_steps: int = 0) -> Compaction:
    """The policy that keeps all sentences to the end.

    Args:
        num_steps: int. If not 0, the search takes at most this many steps in one chunk, without a
            loop over chunks. 0: chunks of `KEPT_CHUNK` steps.
    """

    def keep(unfinished: Unfinished, done: Any) -> tuple[Unfinished, Any]:
        return unfinished, ops.logical_not(ops.all(done))

    def once(goes_on: Callable[..., Any], body: Callable[..., Any], start: Any) -> Any:
        del goes_on
        return body(*start)

    loop = once if num_steps else ops.while_loop
    return Compaction(num_steps or KEPT_CHUNK, loop, _put, keep, drops=False)


def drop_done() -> Compaction:
    """The policy that removes finished sentences, in eager mode or a plain TensorFlow graph."""
    return Compaction(DROPPING_CHUNK, _loop_of_any_batch, _put, _drop, drops=True)


def _put(found: Results, index: Any, rows: Any, beam: Beam, written: Written) -> Results:
    places = ops.stack([ops.full_like(rows, index), rows], axis=1)

    def put(arrays: Any, places: Any, parts: Any) -> Any:
        def update(array: Any, part: Any) -> Any:
            return ops.scatter_update(array, places, part)

        return keras.tree.map_structure(update, arrays, parts)

    return Results(put(found.beam, rows[:, None], beam), put(found.written, places, written))


def _drop(unfinished: Unfinished, done: Any) -> tuple[Unfinished, Any]:
    import tensorflow as tf

    alive = tf.where(~done)[:, 0]
    few = tf.cast(tf.size(alive), tf.float32) <= WORTH * tf.cast(tf.size(done), tf.float32)
    arrays = keras.tree.flatten(unfinished)
    # When all sentences are done, no rows are left, which ends the loop.
    kept = tf.cond(few, lambda: [tf.gather(array, alive) for array in arrays], lambda: arrays)
    return keras.tree.pack_sequence_as(unfinished, kept), tf.size(alive) > 0


def _loop_of_any_batch(goes_on: Callable[..., Any], body: Callable[..., Any], start: Any) -> Any:
    """`tf.while_loop` whose third variable, a list of arrays, may change its batch size."""
    import tensorflow as tf

    start = keras.tree.map_structure(tf.convert_to_tensor, start)
    step, is_left, unfinished, found = keras.tree.map_structure(lambda array: array.shape, start)
    unfinished = [tf.TensorShape([None, *shape[1:]]) for shape in unfinished]
    shapes = (step, is_left, unfinished, found)
    return tf.while_loop(goes_on, body, start, shape_invariants=shapes, parallel_iterations=1)

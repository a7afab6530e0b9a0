"""Batched beam search in one graph of TensorFlow, from which sentences that are done leave.

As `ChunkedSearch`, where nothing but a graph can drive the search, such as in an exported model.
"""

from typing import Any

import keras
import tensorflow as tf

from seq2seq_memattn.search.beam import BeamResult, best
from seq2seq_memattn.search.limits import check_sizes, step_limits
from seq2seq_memattn.search.step import Beam, Rules, Written, advance, first_beam, is_done, trace
from seq2seq_memattn.vocabulary import PAD_ID

CHUNK = 8  # steps between two looks at what is done
WORTH = 0.75  # of a batch: where more is left, what is saved is not worth the copy


def compacting_beam_search(
    model: Any,
    source: Any,
    memory: Any,
    state: Any,
    beam_size: int,
    n_best: int,
    length_penalty_exponent: float,
    max_length: Any = None,
) -> BeamResult:
    """`beam_search`, whose arguments and results it has, with a batch that gets smaller.

    Args:
        model: `DecodingModel`.
        source: int32 [batch, source_length]. The batch's size need not be known ahead.
        memory, state: from `model.start(source, beam_size)`.
    """
    check_sizes(beam_size, n_best)
    limits, num_steps = step_limits(source, max_length, None)

    def rules_of(rows: Any) -> Rules:
        taken = tf.gather(limits, rows)[:, None]
        return Rules(beam_size, n_best, length_penalty_exponent, True, taken, ())

    batch = tf.shape(source)[0]
    going = (model.without_sources(memory), state, tuple(first_beam(batch, beam_size)))
    whole, rows = going[2], tf.range(batch)
    num_chunks = -(-num_steps // CHUNK)
    written = (
        tf.fill([num_chunks, batch, beam_size, CHUNK], PAD_ID),
        tf.zeros([num_chunks, batch, beam_size], tf.int32) + tf.range(beam_size),
    )

    def body(step: Any, rows: Any, arrays: Any, whole: Any, written: Any) -> Any:
        memory, state, beam = keras.tree.pack_sequence_as(going, arrays)
        rules = rules_of(rows)
        chunk = tf.fill(tf.shape(rows), step // CHUNK)
        step, beam, state, new = advance(model, memory, state, Beam(*beam), step, rules, CHUNK)
        whole = _put(whole, rows[:, None], tuple(beam))
        written = _put(written, tf.stack([chunk, rows], axis=1), tuple(new))
        alive = tf.where(~is_done(beam, step, rules))[:, 0]
        few = tf.cast(tf.size(alive), tf.float32) <= WORTH * tf.cast(tf.size(rows), tf.float32)
        left = [rows, *keras.tree.flatten((memory, state, tuple(beam)))]
        # None are left when all are done, which ends the loop.
        rows, *arrays = tf.cond(
            few, lambda: [tf.gather(array, alive) for array in left], lambda: left
        )
        return step, rows, arrays, whole, written

    arrays = keras.tree.flatten(going)
    start = (tf.zeros([], tf.int32), rows, arrays, whole, written)
    invariants = keras.tree.map_structure(lambda array: array.shape, start)
    any_batch = [tf.TensorShape([None, *array.shape[1:]]) for array in arrays]
    _, _, _, whole, written = tf.while_loop(
        lambda step, rows, *_: (step < num_steps) & (tf.size(rows) > 0),
        body,
        start,
        shape_invariants=(invariants[0], tf.TensorShape([None]), any_batch, *invariants[3:]),
        parallel_iterations=1,
    )
    tokens = trace(Written(*written))[:, :, :num_steps]
    return best(Beam(*whole), tokens, rules_of(rows))


def _put(arrays: Any, places: Any, parts: Any) -> Any:
    """Arrays with parts of them replaced: those at `places`, int32 [n, dimensions]."""
    return tuple(
        tf.tensor_scatter_nd_update(array, places, part)
        for array, part in zip(arrays, parts, strict=True)
    )

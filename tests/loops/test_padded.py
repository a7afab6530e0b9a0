"""The two views of a batch, `PaddedSteps` and `PackedSteps`."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf

from seq2seq_memattn.loops.packed import PackedSteps
from seq2seq_memattn.loops.padded import PaddedSteps
from tests.inputs import MODES, mask_of, normal, run, tensor
from tests.tolerances import as_array

LENGTHS, STEPS, WIDTH = (3, 7, 1, 5, 7), 7, 2
X = normal(len(LENGTHS), STEPS, WIDTH)
REAL = mask_of(LENGTHS, STEPS)
# Rows from longest to shortest; equal lengths keep their order.
ORDER = (1, 4, 3, 0, 2)

views = pytest.mark.parametrize("view", [PaddedSteps, PackedSteps])
reverses = pytest.mark.parametrize("reverse", [False, True])
modes = pytest.mark.parametrize("mode", MODES)


def on_steps(mode: str, view: Any, function: Any, *arrays: Any, lengths: Any = LENGTHS) -> Any:
    """Calls `function(steps, *arrays)`."""

    def call(lengths: Any, *arrays: Any) -> Any:
        return function(view(lengths, arrays[0].shape[1]), *arrays)

    return run(mode, call, tensor(lengths, "int32"), *map(tf.constant, arrays))


def unpacked_and_last(mode: str, view: Any, x: Any, lengths: Any) -> Any:
    """What `unpack` and `last` make of packed rows."""
    return on_steps(
        mode, view, lambda s, x: (s.unpack(s.pack(x)), s.last(s.pack(x))), x, lengths=lengths
    )


def turned(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The real steps of every row, in reverse order."""
    x = x.copy()
    for row, length in enumerate(LENGTHS):
        x[row, :length] = x[row, :length][::-1]
    return x


@views
@reverses
@modes
def test_unpack_undoes_pack_and_zeros_padding(view: Any, reverse: bool, mode: str) -> None:
    again = on_steps(mode, view, lambda s, x: s.unpack(s.pack(x, reverse), reverse), X)
    np.testing.assert_array_equal(as_array(again), X * REAL[:, :, None])


@views
@modes
def test_packing_in_reverse_turns_the_real_steps_around(view: Any, mode: str) -> None:
    again = on_steps(mode, view, lambda s, x: s.unpack(s.pack(x, reverse=True)), X)
    np.testing.assert_array_equal(as_array(again), turned(X) * REAL[:, :, None])


@modes
@reverses
def test_padded_steps_hold_all_rows_at_every_step(mode: str, reverse: bool) -> None:
    packed = on_steps(mode, PaddedSteps, lambda s, x: s.pack(x, reverse), X)
    expected = np.swapaxes(turned(X) if reverse else X, 0, 1).reshape(-1, WIDTH)
    np.testing.assert_array_equal(as_array(packed), expected)


@modes
@reverses
def test_packed_steps_hold_the_longest_rows_first_and_no_padding(mode: str, reverse: bool) -> None:
    packed, sizes = on_steps(mode, PackedSteps, lambda s, x: (s.pack(x, reverse), s.sizes), X)
    np.testing.assert_array_equal(as_array(sizes), [5, 4, 4, 3, 3, 2, 2])
    x = turned(X) if reverse else X
    expected = [x[row, step] for step in range(STEPS) for row in ORDER if step < LENGTHS[row]]
    np.testing.assert_array_equal(as_array(packed), expected)


@views
@modes
def test_ids_are_packed_as_floats_are(view: Any, mode: str) -> None:
    ids = np.arange(X[:, :, 0].size, dtype=np.int32).reshape(X.shape[:2])
    packed = on_steps(mode, view, lambda s, x: s.pack(x), ids)
    as_floats = on_steps(mode, view, lambda s, x: s.pack(x), ids[:, :, None].astype(np.float64))
    np.testing.assert_array_equal(as_array(packed), as_array(as_floats)[:, 0])


@views
@modes
def test_last_gives_the_last_real_step_of_each_row(view: Any, mode: str) -> None:
    last = on_steps(mode, view, lambda s, x: s.last(s.pack(x)), X)
    expected = [X[row, length - 1] for row, length in enumerate(LENGTHS)]
    np.testing.assert_array_equal(as_array(last), expected)
    first = on_steps(mode, view, lambda s, x: s.last(s.pack(x, reverse=True)), X)
    np.testing.assert_array_equal(as_array(first), X[:, 0])


@views
@modes
def test_rows_without_real_steps_unpack_to_zeros_and_end_in_zeros(view: Any, mode: str) -> None:
    lengths = (0, 3, 0, 2, 0)
    again, last = unpacked_and_last(mode, view, X, lengths)
    np.testing.assert_array_equal(as_array(again), X * mask_of(lengths, STEPS)[:, :, None])
    expected = np.zeros([5, WIDTH])
    expected[1], expected[3] = X[1, 2], X[3, 1]
    np.testing.assert_array_equal(as_array(last), expected)


@views
@modes
def test_all_rows_may_be_padding(view: Any, mode: str) -> None:
    again, last = unpacked_and_last(mode, view, X, (0,) * len(X))
    np.testing.assert_array_equal(as_array(again), np.zeros_like(X))
    np.testing.assert_array_equal(as_array(last), np.zeros([len(X), WIDTH]))


@views
@modes
def test_a_batch_may_be_empty(view: Any, mode: str) -> None:
    again, last = unpacked_and_last(mode, view, X[:0], ())
    assert tuple(again.shape) == (0, STEPS, WIDTH)
    assert tuple(last.shape) == (0, WIDTH)


@modes
def test_sort_brings_rows_into_the_order_of_the_loop(mode: str) -> None:
    ids = np.arange(len(LENGTHS), dtype=np.int32)
    sort = on_steps(mode, PackedSteps, lambda s, x, ids: (s.sort(x), s.sort(ids)), X, ids)
    np.testing.assert_array_equal(as_array(sort[0]), X[list(ORDER)])
    np.testing.assert_array_equal(as_array(sort[1]), ORDER)
    unsorted = on_steps(mode, PaddedSteps, lambda s, x, ids: (s.sort(x), s.sort(ids)), X, ids)
    np.testing.assert_array_equal(as_array(unsorted[0]), X)


@modes
def test_by_row_keeps_the_order_of_the_loop(mode: str) -> None:
    again = on_steps(mode, PackedSteps, lambda s, x: s.by_row(s.pack(x)), X)
    np.testing.assert_array_equal(as_array(again), (X * REAL[:, :, None])[list(ORDER)])


def weighted(steps: Any, x: Any, weights: Any) -> Any:
    """A sum that depends on every method, each with its own weights."""
    forward, backward = steps.pack(x), steps.pack(x, reverse=True)
    total = tf.reduce_sum(steps.unpack(forward**2) * weights)
    total += tf.reduce_sum(steps.unpack(backward**3, reverse=True) * weights)
    total += tf.reduce_sum(steps.last(forward) * weights[:, 0])
    total += tf.reduce_sum(steps.last(backward) * weights[:, 1])
    sorted_weights = steps.sort(weights)
    return total + tf.reduce_sum(steps.sort(x) ** 2 * sorted_weights)


@views
@modes
def test_gradients_go_back_the_way_the_rows_came(view: Any, mode: str) -> None:
    weights = normal(*X.shape, seed=1)

    def gradients(lengths: Any, x: Any, weights: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, weights])
            loss = weighted(view(lengths, STEPS), x, weights)
        return tape.gradient(loss, [x, weights])

    results = run(mode, gradients, tensor(LENGTHS, "int32"), tf.constant(X), tf.constant(weights))
    real = REAL[:, :, None]
    expected = (2 * X + 3 * X**2) * weights * real + 2 * X * weights
    expected_weights = (X**2 + X**3) * real + X**2
    for row, length in enumerate(LENGTHS):
        expected[row, length - 1] += weights[row, 0]
        expected[row, 0] += weights[row, 1]
        expected_weights[row, 0] += X[row, length - 1]
        expected_weights[row, 1] += X[row, 0]
    np.testing.assert_allclose(as_array(results[0]), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(as_array(results[1]), expected_weights, rtol=0, atol=1e-12)

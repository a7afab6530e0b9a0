from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

from seq2seq_memattn.loops.cell_steps import GRUStep, LSTMStep, OpaqueStep, cell_step
from seq2seq_memattn.loops.products import Products
from tests.inputs import MODES, normal, randomise, run, tensor
from tests.reference import recurrent
from tests.tolerances import as_array, assert_close

ROWS, INPUTS, UNITS = 3, 5, 7

CELLS: dict[str, Any] = {
    "lstm": lambda **options: keras.layers.LSTMCell(UNITS, **options),
    "gru": lambda **options: keras.layers.GRUCell(UNITS, **options),
    "gru_reset_before": lambda **options: keras.layers.GRUCell(UNITS, reset_after=False, **options),
    "lstm_without_bias": lambda **options: keras.layers.LSTMCell(UNITS, use_bias=False, **options),
    "simple": lambda **options: keras.layers.SimpleRNNCell(UNITS, **options),
}
INSIDE = normal(ROWS, INPUTS)

cells = pytest.mark.parametrize("name", CELLS)
aheads = pytest.mark.parametrize("ahead", [0, 2, INPUTS])
modes = pytest.mark.parametrize("mode", MODES)
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


def build(name: str, dtype: str) -> tuple[Any, list[Any]]:
    """A cell with random weights, and random states for it."""
    cell = CELLS[name](dtype=dtype)
    cell.build((None, INPUTS))
    randomise(cell)
    sizes = cell.state_size if isinstance(cell.state_size, (list, tuple)) else [cell.state_size]
    dtype = cell.compute_dtype
    return cell, [tensor(normal(ROWS, n, seed=i), dtype) for i, n in enumerate(sizes)]


def take(cell: Any, ahead: int, inputs: Any, states: Any) -> Any:
    """Output and states of one step, split after `ahead` inputs."""
    step = cell_step(cell, "cell", ahead)
    projected = step.project(inputs[:, :ahead])
    return step.take(Products(step.weights()), projected, inputs[:, ahead:], states)


@cells
@aheads
@modes
@dtypes
def test_a_step_taken_apart_equals_the_cell(name: str, ahead: int, mode: str, dtype: str) -> None:
    cell, states = build(name, dtype)
    inputs = tensor(INSIDE, dtype)
    output, moved = cell(inputs, states)
    ours = run(mode, lambda *arguments: take(cell, ahead, *arguments), inputs, states)
    assert_close(ours, (output, list(moved)), dtype)


@pytest.mark.parametrize(
    ("name", "make"), [("lstm", recurrent.LSTMWeights), ("gru", recurrent.GRUWeights)]
)
@aheads
def test_a_step_equals_the_equations(name: str, make: Any, ahead: int) -> None:
    cell, states = build(name, "float64")
    weights = make(*[as_array(weight) for weight in cell.weights])
    output, moved = take(cell, ahead, tensor(INSIDE, "float64"), states)
    for row in range(ROWS):
        first = tuple(as_array(state)[row] for state in states)
        expected, states_of_row = recurrent.cell_step(INSIDE[row], first, weights)
        assert_close(output[row], expected, "float64")
        assert_close([state[row] for state in moved], list(states_of_row), "float64")


def test_a_long_memory_of_one_unit_by_hand() -> None:
    # i = f = 3/4, g = 1/2, o = 1/4; c' = 3/4 c + 3/8 = ln 3 / 2; h' = 1/4 * 1/2.
    ln3 = np.log(3.0)
    cell = keras.layers.LSTMCell(1, dtype="float64")
    cell.build((None, 1))
    kernels = [[[ln3, 0.0, 0.0, 0.0]], [[0.0, ln3 / 2, 0.0, -ln3 / 2]], [0.0, 0.0, ln3 / 2, 0.0]]
    cell.set_weights([np.array(kernel) for kernel in kernels])
    states = [tensor([[2.0]], "float64"), tensor([[(ln3 / 2 - 3 / 8) / (3 / 4)]], "float64")]
    for ahead in (0, 1):
        _, moved = take(cell, ahead, tensor([[1.0]], "float64"), states)
        assert_close(moved, [np.array([[1 / 8]]), np.array([[ln3 / 2]])], "float64")


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_what_is_projected_ahead_needs_no_product_in_the_loop(name: str) -> None:
    cell, _ = build(name, "float32")
    step = cell_step(cell, "cell", INPUTS)
    assert list(step.weights()) == ["cell"]
    assert step.weights()["cell"].shape[0] == UNITS


def _subclass() -> Any:
    class MyCell(keras.layers.LSTMCell):
        pass

    return MyCell(UNITS)


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        (keras.layers.LSTMCell(UNITS), LSTMStep),
        (keras.layers.GRUCell(UNITS), GRUStep),
        (keras.layers.LSTMCell(UNITS, use_bias=False), OpaqueStep),
        (keras.layers.LSTMCell(UNITS, activation="relu"), OpaqueStep),
        (keras.layers.LSTMCell(UNITS, recurrent_activation="hard_sigmoid"), OpaqueStep),
        (keras.layers.LSTMCell(UNITS, recurrent_dropout=0.1), OpaqueStep),
        (keras.layers.GRUCell(UNITS, reset_after=False), OpaqueStep),
        (keras.layers.GRUCell(UNITS, use_bias=False), OpaqueStep),
        (keras.layers.GRUCell(UNITS, dropout=0.1), OpaqueStep),
        (keras.layers.SimpleRNNCell(UNITS), OpaqueStep),
        (_subclass(), OpaqueStep),
    ],
)
def test_only_cells_with_the_usual_gates_are_taken_apart(cell: Any, kind: Any) -> None:
    assert type(cell_step(cell, "cell", 0)) is kind


@cells
def test_a_step_computes_in_the_dtype_of_its_cell(name: str) -> None:
    cell, states = build(name, "mixed_bfloat16")
    inputs = tensor(INSIDE, "bfloat16")
    moved = take(cell, 2, inputs, states)
    assert all(leaf.dtype == "bfloat16" for leaf in keras.tree.flatten(moved))
    exact, _ = build(name, "float32")
    exact.set_weights(cell.get_weights())
    expected = take(exact, 2, tensor(INSIDE), [ops.cast(state, "float32") for state in states])
    assert_close(moved, expected, "bfloat16")

"""The loop over steps equals Keras's cells, packed and padded, including gradients."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from seq2seq_memattn.compute.backend import has_static_shapes
from seq2seq_memattn.loops.cell_steps import cell_step
from seq2seq_memattn.loops.packed import PackedSteps
from seq2seq_memattn.loops.padded import PaddedSteps
from seq2seq_memattn.loops.products import Products
from seq2seq_memattn.loops.scan import make_steps, scan, scan_cell
from tests.inputs import mask_of, normal, randomise, run, tensor
from tests.loops.test_cell_steps import CELLS
from tests.tolerances import as_array, assert_close

LENGTHS, STEPS, INPUTS, UNITS = (2, 5, 3), 5, 4, 7
X = normal(len(LENGTHS), STEPS, INPUTS)
REAL = mask_of(LENGTHS, STEPS)

MODES = ("eager", "graph", "xla")  # XLA pads rows; the others leave finished rows out

cells = pytest.mark.parametrize("name", ["lstm", "gru", "simple"])
modes = pytest.mark.parametrize("mode", MODES)
modes_and_dtypes = pytest.mark.parametrize(
    ("mode", "dtype"), [("graph", "float32"), *((mode, "float64") for mode in MODES)]
)
trainings = pytest.mark.parametrize("training", [False, True])


def build(name: str, dtype: str) -> tuple[Any, list[Any]]:
    """A cell with random weights, and random first states for every row."""
    cell = CELLS[name](dtype=dtype)
    cell.build((None, INPUTS))
    randomise(cell)
    sizes = cell.state_size if isinstance(cell.state_size, (list, tuple)) else [cell.state_size]
    return cell, [tensor(normal(len(LENGTHS), n, seed=i), dtype) for i, n in enumerate(sizes)]


def run_over_sources(cell: Any, training: bool, x: Any, lengths: Any, states: Any) -> Any:
    """The states after every step, each [batch, step, units], 0 on padding."""
    steps = make_steps(lengths, X.shape[1])
    step = cell_step(cell, "cell", INPUTS)
    first = [steps.sort(state) for state in states]
    projected = step.project(steps.pack(x))
    _, states = scan_cell(step, projected, first, steps, training, return_states=True)
    return [steps.unpack(every) for every in states]


@cells
@modes_and_dtypes
@trainings
def test_a_layer_equals_the_cell_called_step_by_step(
    name: str, mode: str, dtype: str, training: bool
) -> None:
    cell, first = build(name, dtype)
    x = tensor(X, dtype)
    every = run(
        mode,
        lambda *arguments: run_over_sources(cell, training, *arguments),
        x,
        tensor(LENGTHS, "int32"),
        first,
    )
    states, expected = first, []
    for step in range(STEPS):
        _, states = cell(x[:, step], states)
        expected.append(states)
    for index, values in enumerate(every):
        of_state = np.stack([as_array(states[index]) for states in expected], axis=1)
        assert_close(values, of_state * REAL[:, :, None], dtype)


def gradients_of(cell: Any, training: bool, x: Any, lengths: Any, states: Any) -> Any:
    """Gradients of every weight, the inputs and the first states."""
    with tf.GradientTape() as tape:
        tape.watch([x, states])
        every = run_over_sources(cell, training, x, lengths, states)
        loss = sum(
            ops.sum(values * tensor(normal(*values.shape, seed=i), x.dtype))
            for i, values in enumerate(every)
        )
    return tape.gradient(loss, [[v.value for v in cell.trainable_variables], x, states])


@cells
@modes_and_dtypes
def test_gradients_taken_after_the_loop_equal_plain_ones(name: str, mode: str, dtype: str) -> None:
    cell, first = build(name, dtype)
    arguments = [tensor(X, dtype), tensor(LENGTHS, "int32"), first]
    deferred = run(mode, lambda *inputs: gradients_of(cell, True, *inputs), *arguments)
    plain = run("eager", lambda *inputs: gradients_of(cell, False, *inputs), *arguments)
    assert_close(deferred, plain, dtype)


def test_gradients_equal_finite_differences() -> None:
    cell, first = build("lstm", "float64")
    lengths = tensor(LENGTHS, "int32")
    gradients = gradients_of(cell, True, tensor(X, "float64"), lengths, first)
    loss_weights = [normal(len(LENGTHS), STEPS, UNITS, seed=i) for i in range(2)]

    def loss() -> float:
        every = run_over_sources(cell, False, tensor(X, "float64"), lengths, first)
        return float(sum(np.sum(as_array(v) * w) for v, w in zip(every, loss_weights, strict=True)))

    step = 1e-5
    for variable, gradient in zip(cell.trainable_variables, gradients[0], strict=True):
        values = as_array(variable)
        for place in [tuple(p) for p in np.argwhere(np.ones(values.shape))[::17]]:
            losses = []
            for change in (step, -step):
                moved = values.copy()
                moved[place] += change
                variable.assign(moved)
                losses.append(loss())
            variable.assign(values)
            difference = (losses[0] - losses[1]) / (2 * step)
            np.testing.assert_allclose(as_array(gradient)[place], difference, 1e-7, 1e-8)


@modes
@trainings
def test_padding_and_other_rows_change_nothing(mode: str, training: bool) -> None:
    cell, first = build("lstm", "float64")

    def compute(x: Any, lengths: Any, states: Any) -> Any:
        return run_over_sources(cell, training, x, lengths, states)[0]

    filled = np.where(REAL[:, :, None], X, 100.0)
    together = run(mode, compute, tensor(filled, "float64"), tensor(LENGTHS, "int32"), first)
    for row, length in enumerate(LENGTHS):
        alone = run(
            mode,
            compute,
            tensor(X[row : row + 1], "float64"),
            tensor([length], "int32"),
            [state[row : row + 1] for state in first],
        )
        assert_close(together[row : row + 1], alone, "float64")


@pytest.mark.parametrize("padded", [False, True], ids=["packed", "padded"])
@pytest.mark.parametrize("longest", [3, 0])
def test_the_loop_ends_with_the_longest_row(padded: bool, longest: int) -> None:
    taken = []

    def step(products: Any, carry: Any, inputs: Any, crop: Any) -> tuple[Any, Any]:
        taken.append(inputs)
        return carry, inputs

    lengths = tensor([min(longest, 2), longest, 0], "int32")
    steps = PaddedSteps(lengths, STEPS) if padded else PackedSteps(lengths, STEPS)
    (outputs,) = scan(step, [], [steps.pack(tensor(X))], Products({}), steps, [INPUTS])
    # An array cannot be split into no steps, so the packed loop takes one step without rows.
    assert len(taken) == max(longest, 0 if padded else 1)
    expected = X * mask_of(lengths, STEPS)[:, :, None]
    assert_close(steps.unpack(outputs), expected)


@trainings
def test_one_graph_serves_batches_of_every_size(training: bool) -> None:
    cell, _ = build("lstm", "float32")
    signature = [tf.TensorSpec([None, None, INPUTS]), tf.TensorSpec([None], tf.int32)]

    @tf.function(input_signature=signature)
    def compute(x: Any, lengths: Any) -> Any:
        steps = make_steps(lengths, tf.shape(x)[1])
        zeros = [tf.zeros([steps.batch, UNITS])] * 2
        step = cell_step(cell, "cell", INPUTS)
        with tf.GradientTape() as tape:
            output = steps.unpack(
                scan_cell(step, step.project(steps.pack(x)), zeros, steps, training)[0]
            )
            loss = tf.reduce_sum(output**2)
        return output, tape.gradient(loss, [v.value for v in cell.trainable_variables])

    layer = keras.layers.RNN(cell, return_sequences=True, zero_output_for_mask=True)
    for lengths, size in [([5, 4, 3], 5), ([2], 2), ([7, 1], 8)]:
        x = tensor(normal(len(lengths), size, INPUTS))
        output, gradients = compute(x, tensor(lengths, "int32"))
        with tf.GradientTape() as tape:
            expected = layer(x, mask=tensor(mask_of(lengths, size), "bool"))
            loss = tf.reduce_sum(expected**2)
        assert_close(output, expected)
        plain = tape.gradient(loss, [v.value for v in cell.trainable_variables])
        assert_close(list(gradients), plain)
    output, gradients = compute(tensor(normal(0, 3, INPUTS)), tensor([], "int32"))
    assert tuple(output.shape) == (0, 3, UNITS)
    assert not any(as_array(gradient).any() for gradient in gradients)


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_the_modes_of_other_tests_pad_rows_if_their_names_say_so(mode: str) -> None:
    kinds = []

    def make(lengths: Any) -> Any:
        kinds.append(type(make_steps(lengths, STEPS)))
        return lengths

    for name in (mode, f"{mode}_padded"):
        run(name, make, tensor(LENGTHS, "int32"))
    assert kinds == [PackedSteps, PaddedSteps]


@pytest.mark.parametrize("compiled_by", ["itself", "its caller", "nothing"])
def test_rows_are_packed_where_xla_does_not_compile(compiled_by: str) -> None:
    made = []

    @tf.function(jit_compile=True if compiled_by == "itself" else None)
    def inner(lengths: Any) -> Any:
        def body(step: Any) -> Any:  # the body has a graph of its own
            made.append(make_steps(lengths, STEPS))
            return step + 1

        return tf.while_loop(lambda step: step < 2, body, [tf.constant(0)])

    outer = tf.function(lambda lengths: inner(lengths), jit_compile=compiled_by == "its caller")
    outer(tensor(LENGTHS, "int32"))
    expected = PackedSteps if compiled_by == "nothing" else PaddedSteps
    assert made and all(isinstance(steps, expected) for steps in made)
    assert not has_static_shapes() and isinstance(
        make_steps(tensor(LENGTHS, "int32"), STEPS), PackedSteps
    )

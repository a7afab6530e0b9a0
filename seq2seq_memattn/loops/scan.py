"""The loop over the steps of sequences, on each backend."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from seq2seq_memattn.compute.backend import has_static_shapes
from seq2seq_memattn.compute.int8 import outside_loops
from seq2seq_memattn.compute.precision import at_least_float32
from seq2seq_memattn.loops.cell_steps import CellStep, output_units
from seq2seq_memattn.loops.padded import PaddedSteps
from seq2seq_memattn.loops.products import Products

Step = Callable[..., tuple[Any, Sequence[Any]]]


def make_steps(lengths: Any, num_steps: Any) -> Any:
    """The steps of a batch: `PackedSteps` in plain TensorFlow graphs, else `PaddedSteps`.

    Args:
        lengths: int32 [batch]. Real steps of each row.
        num_steps: int or scalar int32. The padded length.
    """
    if not has_static_shapes():
        from seq2seq_memattn.loops.packed import PackedSteps

        return PackedSteps(lengths, num_steps)
    return PaddedSteps(lengths, num_steps)


def scan(
    step: Step,
    carry: Any,
    inputs: Sequence[Any],
    products: Products,
    steps: Any,
    output_units: Sequence[int | None],
    training: bool = False,
    seeds: Sequence[Any] = (),
) -> list[Any]:
    """Runs `step` over all steps.

    Args:
        step: (products, carry, inputs_t, crop) -> carry, outputs_t. `crop` cuts an array
            [batch, ...] in the loop's order down to the rows of the step.
        carry: structure of arrays [batch, ...], in the loop's order; see `steps.sort`.
        inputs: arrays [packed, n] from `steps.pack`; at least one.
        products: the products of the loop, with `products.rows` in the loop's order.
        steps: from `make_steps`.
        output_units: the width of each output; None if it is known only when the graph runs.
        training: whether gradients will be computed; with TensorFlow, those of the products'
            weights and rows are then computed after the loop, see `deferred_gradients.py`.
        seeds: variables. The states of the random generators that a step in training draws from.

    Returns:
        One array [packed, units] for each output of `step`, with its values at all steps.
    """
    if keras.backend.backend() == "tensorflow":
        return _scan_in_tensorflow(step, carry, inputs, products, steps, output_units, training)

    # JAX adds up the gradient of an operand over the steps in the operand's dtype, so the operands
    # enter the loop wide and are rounded in every step.
    wide = _widened(products) if training else products

    # JAX traces the body once, so the loop has to carry the variables that a step changes.
    seeds = seeds if training else ()
    last = first = [ops.convert_to_tensor(seed) for seed in seeds]

    def body(carry: Any, inputs: Any) -> tuple[Any, Any]:
        carry, values = carry
        _assign(seeds, values)
        of_step = _with_dtypes_of(products, wide) if training else products
        carry, outputs = step(of_step, carry, inputs, lambda x: x)
        return (carry, [ops.convert_to_tensor(seed) for seed in seeds]), list(outputs)

    try:
        (_, last), outputs = ops.scan(body, (carry, first), [steps.by_step(x) for x in inputs])
    finally:  # even if a step fails, no variable may keep a value from inside the loop
        _assign(seeds, last)
    # Not -1: an output may be 0 wide.
    return [ops.reshape(x, (x.shape[0] * x.shape[1], x.shape[2])) for x in outputs]


def _widened(products: Products) -> Products:
    """The products with operands in float32 at least."""
    weights = {name: at_least_float32(matrix) for name, matrix in products.weights.items()}
    rows = None if products.rows is None else at_least_float32(products.rows)
    return Products(weights, rows, products.training)


def _with_dtypes_of(products: Products, wide: Products) -> Products:
    """`wide` with the dtypes of `products`."""
    weights = {
        name: ops.cast(matrix, products.weights[name].dtype)
        for name, matrix in wide.weights.items()
    }
    rows = None if wide.rows is None else ops.cast(wide.rows, products.rows.dtype)
    return Products(weights, rows, products.training)


def _assign(variables: Sequence[Any], values: Sequence[Any]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def _scan_in_tensorflow(
    step: Step,
    carry: Any,
    inputs: Sequence[Any],
    products: Products,
    steps: Any,
    output_units: Sequence[int | None],
    training: bool,
) -> list[Any]:
    """As `scan`. Ends with the longest row; in training, defers the products' gradients."""
    import tensorflow as tf

    from seq2seq_memattn.loops.deferred_gradients import DeferredProducts

    dtype = inputs[0].dtype
    deferred = DeferredProducts(products, steps, dtype) if training else None
    arrays = [steps.read_array(x) for x in inputs]
    kinds = [(units, dtype) for units in output_units]
    kinds += deferred.recorded_kinds() if deferred else []
    empty = [steps.write_array(*kind) for kind in kinds]
    flat_carry, end = tf.nest.flatten(carry), steps.end

    def body(t: Any, carried: list[Any], written: list[Any]) -> tuple[Any, list[Any], list[Any]]:
        crop = steps.crop_at(t)
        bound = deferred.bind(t, crop) if deferred else products.cropped(crop)
        state = tf.nest.pack_sequence_as(carry, [crop(x) for x in carried])
        state, outputs = step(bound, state, [array.read(t) for array in arrays], crop)
        outputs = [*outputs, *(deferred.recorded() if deferred else [])]
        written = [array.write(t, x) for array, x in zip(written, outputs, strict=True)]
        return t + 1, tf.nest.flatten(state), written

    _, _, written = tf.while_loop(
        lambda t, *_: t < end,
        body,
        (tf.constant(0), flat_carry, empty),
        shape_invariants=(
            tf.TensorShape([]),
            [steps.carry_shape(x) for x in flat_carry],
            [tf.TensorShape(None)] * len(empty),
        ),
        maximum_iterations=steps.num_steps,
    )
    results = [steps.join(x, units) for x, (units, _) in zip(written, kinds, strict=True)]
    if deferred:
        deferred.finish(results[len(output_units) :])
    return results[: len(output_units)]


def scan_cell(
    step: CellStep,
    projected: Any,
    states: Any,
    steps: Any,
    training: bool = False,
    return_states: bool = False,
) -> tuple[Any, list[Any]]:
    """Runs one cell over sequences whose inputs are all known.

    Args:
        step: the cell's step, whose `ahead` is the number of all its inputs.
        projected: float [packed, n], what `step.project` makes of the inputs.
        states: list of float [batch, units], the first states, in the loop's order.
        steps: from `make_steps`.
        training: see `scan`.
        return_states: whether to return the states of every step.

    Returns:
        outputs: float [packed, units].
        states: for each state, its values after every step, [packed, units]; [] if not requested.
    """
    # A first state that is the output need not be kept twice.
    shown = slice(1 if step.shows_first_state else 0, None if return_states else 0)

    def take(products: Products, carry: Any, inputs: Any, crop: Any) -> tuple[Any, Any]:
        del crop
        output, states = step.take(products, inputs[0], inputs[0][:, :0], carry)
        return states, [output, *states[shown]]

    units = [output_units(step.cell), *(state.shape[-1] for state in states[shown])]
    products = Products(outside_loops(step.weights()), training=training)
    outputs, *kept = scan(
        take, list(states), [projected], products, steps, units, training, step.seeds()
    )
    if return_states and step.shows_first_state:
        kept = [outputs, *kept]
    return outputs, kept

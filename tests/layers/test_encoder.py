from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from seq2seq_memattn.layers.encoder import Encoded, Encoder
from seq2seq_memattn.loops.step_inputs import StepInputs
from tests import as_reference
from tests.errors import refused
from tests.inputs import mask_of, normal, randomise, tensor
from tests.loops.test_scan import MODES, run
from tests.marks import slow
from tests.tolerances import as_array, assert_close

SOURCE_LENGTH, EMBEDDING_DIM, UNITS = 7, 5, 3
LENGTHS = (4, 7, 1, 6)
MASK = mask_of(LENGTHS, SOURCE_LENGTH)
INPUTS = normal(len(LENGTHS), SOURCE_LENGTH, EMBEDDING_DIM)

# Packed and padded steps. A separate test compares them with their compiled forms.
modes = pytest.mark.parametrize("mode", ["eager", "eager_padded"])
cells = pytest.mark.parametrize("cell", ["lstm", "gru"])
directions = pytest.mark.parametrize(
    ("bidirectional", "stacking"),
    [(True, "per_direction"), (True, "concatenated"), (False, "per_direction")],
)


def build(dtype: str = "float32", **options: Any) -> Encoder:
    encoder = Encoder(**{"units": UNITS, "num_layers": 2, "dtype": dtype, **options})
    encoder(tensor(INPUTS, dtype), mask=tensor(MASK, "bool"))
    randomise(encoder)
    return encoder


def encode(encoder: Encoder, mode: str, training: bool = False) -> Any:
    return run(
        mode,
        lambda inputs, mask: encoder(inputs, mask=mask, training=training),
        tensor(INPUTS, encoder.compute_dtype),
        tensor(MASK, "bool"),
    )


@cells
@directions
@pytest.mark.parametrize("num_layers", [*slow(1), 3])
@pytest.mark.parametrize(
    ("mode", "dtype"),
    [("graph", "float64"), *slow(("eager_padded", "float64")), ("eager", "float32")],
)
def test_outputs_and_states_equal_the_equations(
    cell: str, bidirectional: bool, stacking: str, num_layers: int, mode: str, dtype: str
) -> None:
    encoder = build(
        dtype=dtype,
        cell=cell,
        bidirectional=bidirectional,
        stacking=stacking,
        num_layers=num_layers,
    )
    encoded = encode(encoder, mode)
    expected = as_reference.encode(encoder, INPUTS, LENGTHS)
    assert_close(encoded.outputs, expected.outputs, dtype)
    by_direction = [expected.forward_states, expected.backward_states]
    assert len(encoded.states) == num_layers
    for layer, states in enumerate(encoded.states):
        assert len(states) == (2 if bidirectional else 1)
        for direction, ours in enumerate(states):
            assert_close(list(ours), list(by_direction[direction][layer]), dtype)


@pytest.mark.parametrize("mode", MODES)
def test_every_way_of_running_agrees(mode: str) -> None:
    encoder = build("float64")
    encoded = encode(encoder, mode, training=True)
    assert_close(tuple(encoded), tuple(encode(encoder, "eager_padded")), "float64")


def gradients_of(encoder: Encoder, training: bool, inputs: Any, mask: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        encoded = encoder(inputs, mask=mask, training=training)
        loss = 0.0
        for index, values in enumerate(keras.tree.flatten(tuple(encoded))):
            weights = tensor(normal(*values.shape, seed=index), values.dtype)
            loss += tf.reduce_sum(values * weights)
    return tape.gradient(loss, [inputs, *(v.value for v in encoder.trainable_variables)])


@pytest.mark.parametrize(("cell", "stacking"), [("lstm", "per_direction"), ("gru", "concatenated")])
@pytest.mark.parametrize("mode", ["eager", *slow("graph", "xla")])
def test_gradients_taken_after_the_loops_equal_plain_ones(
    cell: str, stacking: str, mode: str
) -> None:
    encoder = build("float64", cell=cell, stacking=stacking)
    arguments = tensor(INPUTS, "float64"), tensor(MASK, "bool")
    deferred = run(mode, lambda *inputs: gradients_of(encoder, True, *inputs), *arguments)
    plain = run("eager_padded", lambda *x: gradients_of(encoder, False, *x), *arguments)
    assert_close(deferred, plain, "float64")


@modes
@directions
def test_padding_is_zero_and_changes_nothing(mode: str, bidirectional: bool, stacking: str) -> None:
    encoder = build("float64", bidirectional=bidirectional, stacking=stacking)
    short = encode(encoder, mode)
    assert not as_array(short.outputs)[~MASK].any()
    filled = np.where(MASK[:, :, None], INPUTS, 100.0)
    longer = np.concatenate([filled, np.full([len(LENGTHS), 4, EMBEDDING_DIM], -100.0)], axis=1)
    long = run(
        mode,
        lambda inputs, mask: encoder(inputs, mask=mask),
        tensor(longer, "float64"),
        tensor(mask_of(LENGTHS, SOURCE_LENGTH + 4), "bool"),
    )
    assert_close(long.outputs[:, :SOURCE_LENGTH], short.outputs, "float64")
    assert_close(long.states, short.states, "float64")


@modes
def test_states_that_are_not_asked_for_may_be_missing_and_nothing_else_changes(mode: str) -> None:
    encoder = build("float64")
    whole = encode(encoder, mode)
    outputs, states = run(
        mode,
        lambda inputs, mask: encoder(inputs, mask=mask, outputs_only=True),
        tensor(INPUTS, "float64"),
        tensor(MASK, "bool"),
    )
    assert_close(outputs, whole.outputs, "float64")
    first = [[direction[:1] for direction in layer] for layer in states]
    assert_close(
        first, [[direction[:1] for direction in layer] for layer in whole.states], "float64"
    )


@modes
def test_tokens_of_a_table_are_read_like_their_embeddings(mode: str) -> None:
    encoder, table = Encoder(units=3, num_layers=2, dtype="float64"), normal(4, EMBEDDING_DIM)
    ids = np.arange(MASK.size).reshape(MASK.shape) % len(table)
    late = run(
        mode,
        lambda table, mask, ids: encoder(StepInputs(ids, table), mask=mask),
        *(tensor(table, "float64"), tensor(MASK, "bool"), tensor(ids, "int32")),
    )
    embedded = tensor(table[ids], "float64")
    expected = run(mode, lambda x, m: encoder(x, mask=m), embedded, tensor(MASK, "bool"))
    assert_close(late.outputs, expected.outputs, "float64")
    assert_close(late.states, expected.states, "float64")


@modes
def test_the_other_sentences_change_nothing(mode: str) -> None:
    encoder = build("float64")
    together = encode(encoder, mode)
    for row in range(len(LENGTHS)):
        alone = run(
            mode,
            lambda inputs, mask: encoder(inputs, mask=mask),
            tensor(INPUTS[row : row + 1, : LENGTHS[row]], "float64"),
            tensor(MASK[row : row + 1, : LENGTHS[row]], "bool"),
        )
        assert_close(alone.outputs[0], together.outputs[row, : LENGTHS[row]], "float64")
        states = keras.tree.map_structure(lambda state, row=row: state[row], together.states)
        assert_close(
            keras.tree.map_structure(lambda state: state[0], alone.states), states, "float64"
        )


@modes
def test_a_sentence_without_real_tokens_ends_in_zeros(mode: str) -> None:
    encoder = build()
    mask = mask_of((4, 0, 1, 6), SOURCE_LENGTH)
    encoded = run(
        mode,
        lambda inputs, mask: encoder(inputs, mask=mask),
        tensor(INPUTS),
        tensor(mask, "bool"),
    )
    assert not as_array(encoded.outputs)[1].any()
    assert not any(as_array(state)[1].any() for state in keras.tree.flatten(encoded.states))


def test_without_a_mask_all_tokens_are_real() -> None:
    encoder = build()
    everything = tensor(np.ones_like(MASK), "bool")
    assert_close(tuple(encoder(tensor(INPUTS))), tuple(encoder(tensor(INPUTS), mask=everything)))


def test_the_mask_of_keras_is_taken_and_handed_on() -> None:
    encoder = build()
    embedding = keras.layers.Embedding(11, EMBEDDING_DIM, mask_zero=True)
    ids = tensor([[3, 9, 4], [2, 8, 0]], "int32")
    encoded = encoder(embedding(ids))
    given = tensor([[True, True, True], [True, True, False]], "bool")
    assert_close(tuple(encoded), tuple(encoder(embedding(ids), mask=given)))
    np.testing.assert_array_equal(as_array(encoded.outputs._keras_mask), as_array(given))


# Dropout. A cell that outputs its inputs shows which of them were dropped.


class Echo(keras.layers.LSTMCell):
    """A cell that outputs its inputs."""

    def call(self, inputs: Any, states: Any, training: bool = False) -> Any:
        return inputs, [inputs, states[1]]


def echoing(dropout: float, num_layers: int = 1) -> Encoder:
    encoder = Encoder(EMBEDDING_DIM, num_layers, bidirectional=False, dropout=dropout)
    for layer in encoder.layers:
        layer.cell = Echo(EMBEDDING_DIM)
    return encoder


@modes
def test_dropout_is_drawn_for_each_token_and_sentence(mode: str) -> None:
    encoder, ones = echoing(0.5), tensor(np.ones([13, 11, EMBEDDING_DIM]))
    for batch in (13, 7):
        seen = as_array(run(mode, lambda x: encoder(x, training=True), ones[:batch]).outputs)
        assert set(np.unique(seen)) == {0.0, 2.0}
        assert 0.4 < np.mean(seen > 0) < 0.6
        assert len({tuple(row) for row in seen[0]}) > 5  # different masks over 11 tokens
        assert len({tuple(row) for row in seen[:, 0]}) > 3
        again = as_array(run(mode, lambda x: encoder(x, training=True), ones[:batch]).outputs)
        assert (seen != again).any()


@modes
def test_dropout_is_applied_to_the_inputs_of_every_layer(mode: str) -> None:
    encoder, ones = echoing(0.5, num_layers=2), tensor(np.ones([13, 11, EMBEDDING_DIM]))
    seen = as_array(run(mode, lambda x: encoder(x, training=True), ones).outputs)
    assert set(np.unique(seen)) == {0.0, 4.0}
    assert 0.2 < np.mean(seen > 0) < 0.3


@modes
def test_dropout_is_off_outside_of_training(mode: str) -> None:
    encoder = build(dropout=0.9)
    assert_close(tuple(encode(encoder, mode)), tuple(encode(encoder, mode)))
    expected = as_reference.encode(encoder, INPUTS, LENGTHS)
    assert_close(encode(encoder, mode).outputs, expected.outputs)


@pytest.mark.parametrize("mode", ["graph", "graph_padded"])
def test_a_graph_draws_dropout_anew_at_each_call(mode: str) -> None:
    encoder = build(dropout=0.5)
    padded = mode == "graph_padded"

    @tf.function(input_signature=[tf.TensorSpec([None, None, EMBEDDING_DIM])])
    def compute(inputs: Any) -> Any:
        return run("eager_padded" if padded else "eager", lambda: encoder(inputs, training=True))[0]

    first, second = (as_array(compute(tensor(INPUTS))) for _ in range(2))
    assert (first != second).any()
    assert compute(tensor(INPUTS[:3, :2])).shape == (3, 2, 2 * UNITS)


def test_the_seed_decides_dropout() -> None:
    encoders = [build(dropout=0.5, seed=seed) for seed in (3, 3, 4)]
    for encoder in encoders:
        encoder.set_weights(encoders[0].get_weights()[:-1] + encoder.get_weights()[-1:])
    first, same, other = (
        as_array(encoder(tensor(INPUTS), training=True).outputs) for encoder in encoders
    )
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"units": 0}, "`units` must be an int >= 1; got 0"),
        ({"units": 3.5}, "`units` must be an int >= 1; got 3.5"),
        ({"num_layers": 0}, "`num_layers` must be an int >= 1; got 0"),
        ({"cell": "rnn"}, "`cell` must be one of lstm, gru; got 'rnn'"),
        ({"dropout": 1.0}, r"`dropout` must be in \[0, 1\); got 1.0"),
        ({"dropout": "0.1"}, "`dropout` must be a finite number; got '0.1'"),
        ({"stacking": "concat"}, "`stacking` must be one of per_direction, concatenated; got"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Encoder(**{"units": 3, **arguments})


@pytest.mark.parametrize(
    ("inputs", "mask", "message"),
    [
        (
            (2, 7),
            None,
            "`inputs`: expected shape [batch, source_length, embedding_dim]; got [2, 7]",
        ),
        ((2, 7, 5), (2, 5), "`mask`: expected length 7; got 5."),
        ((2, 7, 5), (1, 7), "`mask`: expected batch 2; got 1."),
    ],
)
def test_inputs_that_do_not_fit_are_named(inputs: Any, mask: Any, message: str) -> None:
    given = None if mask is None else np.ones(mask, bool)
    assert refused(Encoder(3), np.zeros(inputs, np.float32), given).startswith(message)


def test_a_mask_given_by_position_is_handed_on() -> None:
    mask = np.array([[True, True, False], [True, False, False]])
    encoded = Encoder(3)(np.ones([2, 3, 4], np.float32), mask)
    np.testing.assert_array_equal(as_array(encoded.outputs._keras_mask), mask)


def test_kernels_may_be_made_by_a_function() -> None:
    encoder = Encoder(3, kernel_initializer=lambda shape, dtype: keras.ops.ones(shape, dtype))
    encoder.build((None, None, 4))
    assert (as_array(encoder.layers[0].cell.kernel) == 1.0).all()


def test_kernels_may_be_made_by_an_initializer_that_cannot_be_copied() -> None:
    class Filled(keras.initializers.Initializer):
        def __init__(self, value: float) -> None:
            self.value = value

        def __call__(self, shape: Any, dtype: Any = None) -> Any:
            return keras.ops.full(shape, self.value, dtype)

    encoder = Encoder(3, kernel_initializer=Filled(0.25))
    encoder.build((None, None, 4))
    assert (as_array(encoder.layers[0].cell.kernel) == 0.25).all()


def test_the_record_names_its_fields() -> None:
    assert Encoded._fields == ("outputs", "states")


def test_weights_are_drawn_anew_unless_a_seed_is_given() -> None:
    def kernel(**options: Any) -> Any:
        encoder = Encoder(3, **options)
        encoder.build((None, None, 4))
        return as_array(encoder.layers[0].cell.kernel)

    found = []
    for seed in (1, 2, 1):
        keras.utils.set_random_seed(seed)
        found.append(kernel())
    assert (found[0] != found[1]).any() and (found[0] == found[2]).all()
    assert (kernel() != kernel()).any() and (kernel(seed=4) == kernel(seed=4)).all()
    assert Encoder.from_config(Encoder(3).get_config()).seed is None


def test_a_source_without_positions_is_refused() -> None:
    message = refused(Encoder(3), np.zeros((2, 0, 4), np.float32))
    assert message == "`inputs`: expected at least one position; got source_length 0."

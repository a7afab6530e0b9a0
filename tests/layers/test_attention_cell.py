import copy
import json
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from seq2seq_memattn.attention.additive import BahdanauAttention
from seq2seq_memattn.attention.k_memory import KMemoryAttention
from seq2seq_memattn.attention.multiplicative import LuongAttention
from seq2seq_memattn.attention.no_attention import NoAttention
from seq2seq_memattn.layers.attention_cell import AttentionCell, AttentionCellState
from seq2seq_memattn.layers.attention_decoder import AttentionDecoder
from tests import as_reference
from tests.errors import refused
from tests.inputs import lower_to_hlo, mask_of, normal, randomise, run, tensor
from tests.marks import slow
from tests.reference import decoder as reference
from tests.tolerances import as_array, assert_close

BATCH, QUERIES, STEPS, SOURCE_LENGTH = 2, 3, 4, 5
ENCODER_UNITS, EMBEDDING_DIM, UNITS, MIXING_UNITS = 7, 6, 8, 9
LENGTHS = (5, 3)
ENCODER_OUTPUTS = normal(BATCH, SOURCE_LENGTH, ENCODER_UNITS)
MASK = mask_of(LENGTHS, SOURCE_LENGTH)
EMBEDDED = normal(BATCH, STEPS, QUERIES, EMBEDDING_DIM)

ATTENTIONS: dict[str, Any] = {
    "k_memory": lambda **options: KMemoryAttention(4, **options),
    "bahdanau": lambda **options: BahdanauAttention(11, **options),
    "luong_general": lambda **options: LuongAttention("general", UNITS, **options),
    "none": NoAttention,
}
CELLS: dict[str, Any] = {
    "lstm": keras.layers.LSTMCell,
    "gru": keras.layers.GRUCell,
    "simple": keras.layers.SimpleRNNCell,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "reference": {"mixing_units": MIXING_UNITS},
    "before": {"read": "before", "mixing_units": MIXING_UNITS},
    "before_unfed": {"read": "before", "input_feeding": False, "mixing_units": MIXING_UNITS},
    "unfed": {"input_feeding": False, "mixing_units": MIXING_UNITS},
    "linear": {"mixing_units": MIXING_UNITS, "mixing_activation": "linear"},
    "from_output": {"mixing_units": MIXING_UNITS, "mixing_from": "output"},
    "unmixed": {},
    "unmixed_from_output": {"mixing_from": "output"},
}

attentions = pytest.mark.parametrize("attention", ATTENTIONS)
variants = pytest.mark.parametrize("variant", VARIANTS)


def build(
    attention: str, kind: str = "lstm", layers: int = 2, dtype: str = "float64", **options: Any
) -> AttentionCell:
    """A cell with random weights."""
    cells = [CELLS[kind](UNITS, dtype=dtype) for _ in range(layers)]
    cell = AttentionCell(cells, ATTENTIONS[attention](dtype=dtype), dtype=dtype, **options)
    memory = cell.attention.prepare(tensor(ENCODER_OUTPUTS))
    cell(tensor(EMBEDDED[:, 0]), memory, cell.initial_state(memory, QUERIES))
    randomise(cell)
    return cell


def first_states(cell: AttentionCell) -> list[list[Any]]:
    """Random first states [batch, units], different for each cell and part."""
    return [
        [normal(BATCH, UNITS, seed=3 * index + part) for part in range(_parts(inner))]
        for index, inner in enumerate(cell.cells)
    ]


def _parts(cell: Any) -> int:
    return len(cell.state_size) if isinstance(cell.state_size, (list, tuple)) else 1


def take_steps(
    cell: AttentionCell, outputs: Any, mask: Any, embedded: Any, cell_states: Any
) -> tuple[Any, Any, Any]:
    """Outputs and scores [batch, step, queries, n], and the state after the last step."""
    memory = cell.attention.prepare(outputs, mask)
    state = cell.initial_state(memory, QUERIES, cell_states)
    every: list[Any] = []
    for step in range(STEPS):
        output, scores, state = cell(embedded[:, step], memory, state)
        every.append((output, scores))
    return *(ops.stack(values, axis=1) for values in zip(*every, strict=True)), state


def check_against_the_equations(cell: AttentionCell, mode: str, dtype: str) -> None:
    states = first_states(cell)
    outputs, scores, state = run(
        mode,
        lambda *arguments: take_steps(cell, *arguments),
        tensor(ENCODER_OUTPUTS, dtype),
        tensor(MASK, "bool"),
        tensor(EMBEDDED, dtype),
        [[tensor(part, dtype) for part in parts] for parts in states],
    )
    weights = as_reference.decoder_weights(cell, np.eye(outputs.shape[-1]))
    for row, length in enumerate(LENGTHS):
        attend = as_reference.attend(cell.attention, ENCODER_OUTPUTS[row], length)
        start = reference.initial_state(
            weights.cells,
            state.context.shape[-1],
            [tuple(part[row] for part in parts) for parts in states],
        )
        for query in range(QUERIES):
            expected = reference.teacher_forced(
                EMBEDDED[row, :, query], start, weights, attend, as_reference.decoder_options(cell)
            )
            ours = [outputs[row, :, query], scores[row, :, query]]
            assert_close(ours, list(expected[:2]), dtype)
            assert_close(state.context[row, query], expected[2].context, dtype)
            cells = keras.tree.map_structure(lambda x, r=row, q=query: x[r, q], state.cells)
            assert_close(cells, [list(parts) for parts in expected[2].cells], dtype)


@attentions
@variants
@pytest.mark.parametrize("kind", ["lstm", *slow("gru")])
def test_steps_equal_the_equations(attention: str, variant: str, kind: str) -> None:
    check_against_the_equations(build(attention, kind, **VARIANTS[variant]), "eager", "float64")


@attentions
@pytest.mark.parametrize("variant", ["reference", "before"])
@pytest.mark.parametrize("dtype", ["float64", *slow("float32")])
def test_steps_of_a_graph_equal_the_equations(attention: str, variant: str, dtype: str) -> None:
    cell = build(attention, dtype=dtype, **VARIANTS[variant])
    check_against_the_equations(cell, "graph", dtype)


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("variant", ["reference", "before"])
def test_any_number_of_cells_can_be_stacked(layers: int, kind: str, variant: str) -> None:
    cell = build("k_memory", kind, layers, **VARIANTS[variant])
    check_against_the_equations(cell, "eager", "float64")


def test_one_unit_of_each_by_hand() -> None:
    # The update gate is 1/2, so h' = h / 2 + tanh(x + c) / 2; the only row is ln 3 / 2, whose tanh
    # is 1/2; the output is tanh(-4 h + c).
    ln3 = np.log(3.0)
    cell = AttentionCell(
        keras.layers.GRUCell(1, dtype="float64"),
        KMemoryAttention(1, dtype="float64"),
        mixing_units=1,
        dtype="float64",
    )
    memory = cell.attention.prepare(tensor([[[ln3 / 2]]], "float64"))
    zero, state = tensor([[[0.0]]], "float64"), cell.initial_state(memory, 1)
    cell(zero, memory, state)
    kernel = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    cell.cells[0].set_weights([kernel, np.zeros([1, 3]), np.zeros([2, 3])])
    assert cell.mixing is not None
    cell.mixing.set_weights([np.array([[-4.0], [1.0]]), np.zeros([1])])
    output, scores, state = cell(zero, memory, state)
    for value, expected in [(output, 1 / 2), (scores, 1.0), (state.cells[0][0], 0.0)]:
        assert_close(value, [[[expected]]], "float64")
    output, _, state = cell(zero, memory, state)
    assert_close(state.cells[0][0], [[[1 / 4]]], "float64")
    assert_close(output, [[[np.tanh(-1 + ln3 / 2)]]], "float64")


def test_state_begins_with_zeros_or_with_the_given_states_for_every_query() -> None:
    cell = build("k_memory")
    memory = cell.attention.prepare(tensor(ENCODER_OUTPUTS, "float64"))
    state = cell.initial_state(memory, QUERIES)
    assert isinstance(state, AttentionCellState)
    assert tuple(state.context.shape) == (BATCH, QUERIES, ENCODER_UNITS)
    assert not any(as_array(leaf).any() for leaf in keras.tree.flatten(state))
    given = first_states(cell)
    state = cell.initial_state(
        memory, QUERIES, [[tensor(part, "float64") for part in parts] for parts in given]
    )
    expected = [[np.repeat(part[:, None], QUERIES, axis=1) for part in parts] for parts in given]
    assert_close(state.cells, expected, "float64")
    assert not as_array(state.context).any()


@attentions
@pytest.mark.parametrize("variant", ["reference", "before"])
def test_every_query_is_a_hypothesis_of_its_own(attention: str, variant: str) -> None:
    cell = build(attention, **VARIANTS[variant])
    memory = cell.attention.prepare(tensor(ENCODER_OUTPUTS, "float64"), MASK)
    state = cell.initial_state(memory, QUERIES)
    _, _, state = cell(tensor(EMBEDDED[:, 0], "float64"), memory, state)
    together = cell(tensor(EMBEDDED[:, 1], "float64"), memory, state)
    for query in range(QUERIES):
        alone = keras.tree.map_structure(lambda x, q=query: x[:, q : q + 1], state)
        embedded = tensor(EMBEDDED[:, 1, query : query + 1], "float64")
        expected = keras.tree.map_structure(lambda x, q=query: x[:, q : q + 1], together)
        assert_close(cell(embedded, memory, alone), expected, "float64")


def test_xla_takes_gradients_of_a_users_loop_over_sizes_that_are_unknown() -> None:
    cell = build("k_memory", layers=1, dtype="float32", mixing_units=MIXING_UNITS)

    def total(embedded: Any, outputs: Any) -> Any:
        memory = cell.attention.prepare(outputs)
        first = cell.initial_state(memory, 1)

        def step(index: Any, carried: Any, total: Any) -> Any:
            state = tf.nest.pack_sequence_as(first, carried)
            output, _, state = cell(embedded[:, index, None], memory, state)
            return index + 1, tf.nest.flatten(state), total + ops.sum(output)

        steps = tf.shape(embedded)[1]
        begin = (tf.constant(0), tf.nest.flatten(first), tf.constant(0.0))
        return tf.while_loop(lambda i, *_: i < steps, step, begin, maximum_iterations=steps)[2]

    def gradients(*inputs: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = total(*inputs)
        return tape.gradient(loss, [weight.value for weight in cell.trainable_variables])

    assert "while" in lower_to_hlo(gradients, tensor(EMBEDDED[:, 0]), tensor(ENCODER_OUTPUTS))


# Other Keras cells


class Halving(keras.layers.Layer):
    """A user's cell with one state and an output that differs from the state."""

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.state_size = self.output_size = units

    def build(self, input_shape: Any) -> None:
        self.kernel = self.add_weight((input_shape[-1], self.state_size), name="kernel")
        self.built = True

    def call(self, inputs: Any, states: Any) -> Any:
        state = 0.5 * states[0] + ops.matmul(inputs, self.kernel)
        return ops.tanh(state), [state]


KERAS_CELLS: dict[str, Any] = {
    "simple": lambda: keras.layers.SimpleRNNCell(UNITS),
    "gru_reset_before": lambda: keras.layers.GRUCell(UNITS, reset_after=False),
    "lstm_relu": lambda: keras.layers.LSTMCell(UNITS, activation="relu"),
    "of_a_user": lambda: Halving(UNITS),
}


@pytest.mark.parametrize("name", KERAS_CELLS)
@pytest.mark.parametrize("fed", [True, False])
def test_any_keras_cell_can_be_wrapped(name: str, fed: bool) -> None:
    inner = [KERAS_CELLS[name](), KERAS_CELLS[name]()]
    cell = AttentionCell(inner, BahdanauAttention(11), input_feeding=fed)
    memory = cell.attention.prepare(tensor(ENCODER_OUTPUTS))
    state = cell.initial_state(memory, QUERIES)
    cell(tensor(EMBEDDED[:, 0]), memory, state)
    randomise(cell, scale=0.2)
    states = [[ops.zeros([BATCH * QUERIES, UNITS]) for _ in range(_parts(c))] for c in inner]
    context = ops.zeros([BATCH, QUERIES, ENCODER_UNITS])
    for step in range(STEPS):
        outputs, scores, state = cell(tensor(EMBEDDED[:, step]), memory, state)
        x = tensor(EMBEDDED[:, step])
        x = ops.concatenate([x, context], axis=-1) if fed else x
        x = ops.reshape(x, [BATCH * QUERIES, -1])
        for index, keras_cell in enumerate(inner):
            x, states[index] = keras_cell(x, states[index])
        output = ops.reshape(x, [BATCH, QUERIES, UNITS])
        context, expected_scores, _ = cell.attention.read(output, memory)
        assert_close([outputs, scores], [ops.concatenate([output, context], -1), expected_scores])
        flat = keras.tree.map_structure(lambda x: ops.reshape(x, [-1, UNITS]), state.cells)
        assert_close(flat, [list(parts) for parts in states])


@pytest.mark.parametrize("wrap", [keras.layers.StackedRNNCells, list, tuple])
def test_a_stack_can_be_given_as_keras_stacks_cells(wrap: Any) -> None:
    cells = [keras.layers.LSTMCell(UNITS), keras.layers.GRUCell(UNITS)]
    cell = AttentionCell(wrap(cells), NoAttention())
    memory = cell.attention.prepare(tensor(ENCODER_OUTPUTS))
    embedded = tensor(EMBEDDED[:, 0])
    output, _, state = cell(embedded, memory, cell.initial_state(memory, QUERIES))
    flat = ops.reshape(embedded, [-1, EMBEDDING_DIM])
    zeros = [ops.zeros([BATCH * QUERIES, UNITS])] * 3
    stack = keras.layers.StackedRNNCells(cells)
    expected, states = stack(flat, [zeros[:2], zeros[2]])
    assert_close(ops.reshape(output, [-1, UNITS]), expected)
    flat_states = [ops.reshape(x, [-1, UNITS]) for x in keras.tree.flatten(state.cells)]
    assert_close(flat_states, keras.tree.flatten(states))


# Dropout


def test_masks_multiply_what_the_step_makes_for_each_cell() -> None:
    cell = build("k_memory")
    memory = cell.attention.prepare(tensor(ENCODER_OUTPUTS, "float64"))
    masks = [normal(BATCH, QUERIES, n) > 0 for n in (ENCODER_UNITS, UNITS)]
    masks = [tensor(2.0 * mask, "float64") for mask in masks]
    state = cell.initial_state(memory, QUERIES)
    _, _, state = cell(tensor(EMBEDDED[:, 0], "float64"), memory, state)
    embedded = tensor(EMBEDDED[:, 1], "float64")
    dropped, _, after = cell(embedded, memory, state, masks=masks)
    lower, upper = cell.cells
    x = ops.concatenate([embedded, state.context * masks[0]], axis=-1)
    flat = keras.tree.map_structure(lambda x: ops.reshape(x, [-1, x.shape[-1]]), state.cells)
    x, _ = lower(ops.reshape(x, [BATCH * QUERIES, -1]), flat[0])
    x, _ = upper(x * ops.reshape(masks[1], x.shape), flat[1])
    assert_close(ops.reshape(after.cells[1][0], x.shape), x, "float64")
    assert (as_array(dropped) != as_array(cell(embedded, memory, state)[0])).any()


@pytest.mark.parametrize("option", ["dropout", "recurrent_dropout"])
def test_a_cell_with_dropout_of_its_own_is_refused(option: str) -> None:
    cells = [keras.layers.GRUCell(UNITS), keras.layers.LSTMCell(UNITS, **{option: 0.25})]
    with pytest.raises(ValueError, match=f"a cell without {option}; got 0.25"):
        AttentionCell(cells, NoAttention())


def test_a_cell_with_dropout_inside_another_is_refused() -> None:
    class Around(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.inner = keras.layers.GRUCell(UNITS, dropout=0.25)
            self.state_size = self.output_size = UNITS

        def call(self, inputs: Any, states: Any) -> Any:
            return self.inner(inputs, states)

    with pytest.raises(ValueError, match=r"a cell without dropout; got 0\.25"):
        AttentionCell(Around(), NoAttention())


# Keras


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="`read` must be one of after, before; got 'during'"):
        AttentionCell(keras.layers.LSTMCell(UNITS), NoAttention(), read="during")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`mixing_activation` must be one of tanh, linear; got"):
        AttentionCell(
            keras.layers.LSTMCell(UNITS),
            NoAttention(),
            mixing_activation="relu",  # type: ignore[arg-type]
        )
    with pytest.raises(ValueError, match="`mixing_activation`: 'linear' needs `mixing_units`"):
        AttentionCell(keras.layers.LSTMCell(UNITS), NoAttention(), mixing_activation="linear")
    with pytest.raises(ValueError, match="`mixing_from` must be .*; got 'context'"):
        AttentionCell(
            keras.layers.LSTMCell(UNITS),
            NoAttention(),
            mixing_from="context",  # type: ignore[arg-type]
        )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@attentions
def test_half_precision_agrees_with_double(attention: str, dtype: str) -> None:
    exact = build(attention, **VARIANTS["reference"])
    half = build(attention, dtype=f"mixed_{dtype}", **VARIANTS["reference"])
    half.set_weights(exact.get_weights())
    arguments = [ENCODER_OUTPUTS, EMBEDDED, first_states(exact)]
    results = []
    for cell, kind in [(exact, "float64"), (half, dtype)]:
        outputs, embedded, states = keras.tree.map_structure(
            lambda x, d=kind: tensor(x, d), arguments
        )
        results.append(take_steps(cell, outputs, MASK, embedded, states))
    assert all(leaf.dtype == dtype for leaf in keras.tree.flatten(results[1]))
    assert_close(results[1], results[0], dtype)


@pytest.mark.parametrize("kind", CELLS)
def test_keras_serialises_a_cell_that_is_built(kind: str) -> None:
    cell = build("k_memory", kind, **VARIANTS["reference"])
    saved = json.loads(json.dumps(keras.saving.serialize_keras_object(cell)))
    again = keras.saving.deserialize_keras_object(saved)
    arguments = tensor(ENCODER_OUTPUTS), MASK, tensor(EMBEDDED), first_states(cell)
    take_steps(again, *arguments)
    again.set_weights(cell.get_weights())
    assert_close(take_steps(again, *arguments), take_steps(cell, *arguments), "float64")


@attentions
def test_a_copy_of_a_cell_gives_the_same(attention: str) -> None:
    cell = build(attention, **VARIANTS["reference"])
    arguments = tensor(ENCODER_OUTPUTS), MASK, tensor(EMBEDDED), first_states(cell)
    expected = take_steps(cell, *arguments)
    assert_close(take_steps(copy.deepcopy(cell), *arguments), expected, "float64")


class AlphaFirst(NamedTuple):
    """A memory whose rows are not its first field."""

    alpha: Any
    rows: Any


class Reordered(KMemoryAttention):
    """Stores the rows after the encoder scores."""

    def prepare(self, encoder_outputs: Any, mask: Any = None) -> Any:
        memory = super().prepare(encoder_outputs, mask)
        return AlphaFirst(memory.alpha, memory.rows)


def test_the_rows_of_a_memory_may_be_any_field_of_its_record() -> None:
    cell = AttentionCell(keras.layers.LSTMCell(UNITS), Reordered(4), mixing_units=MIXING_UNITS)
    memory = cell.attention.prepare(tensor(ENCODER_OUTPUTS), MASK)
    outputs, _, state = cell(tensor(EMBEDDED[:, 0]), memory, cell.initial_state(memory, QUERIES))
    assert tuple(outputs.shape) == (BATCH, QUERIES, MIXING_UNITS)
    assert tuple(state.context.shape) == (BATCH, QUERIES, ENCODER_UNITS)


def test_inputs_with_a_mask_of_keras_raise_no_warning() -> None:
    cell = build("k_memory", dtype="float32")
    embedding = keras.layers.Embedding(11, EMBEDDING_DIM, mask_zero=True)
    memory = cell.attention.prepare(tensor(ENCODER_OUTPUTS))
    ids = tensor([[3, 9, 4], [2, 8, 0]], "int32")
    cell(embedding(ids), memory, cell.initial_state(memory, QUERIES))


def test_a_missing_state_is_refused_in_one_line() -> None:
    cell = build("k_memory")
    memory, embedded = cell.attention.prepare(tensor(ENCODER_OUTPUTS)), tensor(EMBEDDED[:, 0])
    for given, got in [((), "tuple of 0"), (None, "NoneType"), ([embedded], "list of 1")]:
        assert refused(cell, embedded, memory, given) == (
            "`state`: expected AttentionCellState(cells, context, attention), from `initial_state` "
            f"or the step before; got {got}."
        )


def test_wrong_arguments_of_a_step_are_refused_in_one_line() -> None:
    cell = build("k_memory")
    raw, inputs = tensor(ENCODER_OUTPUTS), tensor(EMBEDDED[:, 0])
    memory = cell.attention.prepare(raw)
    wide = memory._replace(rows=ops.tile(memory.rows, [1, 1, 2]))
    state, of_wide = (cell.initial_state(x, QUERIES) for x in (memory, wide))
    flat = state._replace(context=state.context[:, 0])
    no_memory = "`memory`: expected the record that `attention.prepare` returns; got EagerTensor."
    assert refused(cell.initial_state, raw, QUERIES) == no_memory
    for arguments, message in [
        (
            (inputs[:, 0], memory, state),
            "`inputs`: expected shape [batch, queries, units]; got [2,",
        ),
        ((inputs[:, :, :5], memory, state), "`inputs`: expected units 6; got 5."),
        ((inputs[:, :2], memory, state), "`inputs`: expected queries 3; got 2."),
        ((inputs[:1], memory, state), "`memory.rows`: expected batch 1; got 2."),
        ((inputs, wide, of_wide), "`memory.rows`: expected units 7; got 14."),
        ((inputs, raw, state), no_memory),
        ((inputs, memory, of_wide), "`state.context`: expected units 7; got 14."),
        ((inputs, memory, flat), "`state.context`: expected shape [batch, queries, units]; got"),
    ]:
        assert refused(cell, *arguments).startswith(message)


def test_widths_of_a_cell_that_is_not_built_are_refused() -> None:
    cell = AttentionCell(keras.layers.GRUCell(UNITS), NoAttention(), name="cell")
    for name in ("input_units", "output_units"):
        assert refused(getattr, cell, name).startswith("cell is not built yet")
    assert (
        AttentionCell(keras.layers.GRUCell(UNITS), NoAttention(), mixing_units=9).output_units == 9
    )


@pytest.mark.parametrize("kind", [keras.layers.GRUCell, keras.layers.LSTMCell])
def test_a_cell_that_was_built_for_other_inputs_is_refused(kind: Any) -> None:
    inner, outputs = kind(UNITS), tensor(ENCODER_OUTPUTS)
    decoder = AttentionDecoder(inner, KMemoryAttention(3))
    decoder(tensor(EMBEDDED[:, :, 0]), outputs)
    other = AttentionDecoder(inner, KMemoryAttention(3), input_feeding=False)
    assert refused(other, tensor(EMBEDDED[:, :, 0]), outputs) == (
        f"`cell`: expected a cell not yet built, or built with inputs of {EMBEDDING_DIM} units; "
        f"got one built with {EMBEDDING_DIM + ENCODER_UNITS}."
    )


def test_first_states_that_do_not_fit_the_cells_are_refused() -> None:
    cell = AttentionCell(keras.layers.GRUCell(6), KMemoryAttention(3))
    memory = cell.attention.prepare(ops.zeros([2, 5, 4]))
    expected = "`cell_states`: expected a list of states for each cell, [[6]] wide; got"
    for states, message in [
        ([ops.zeros([2, 6])], f"{expected} no list of lists."),
        ([[ops.zeros([2, 5])]], f"{expected} [[5]]."),
        ([[ops.zeros([2, 6])], [ops.zeros([2, 6])]], f"{expected} [[6], [6]]."),
        ([[[ops.zeros([2, 6])]]], "`cell_states`: expected an array [batch, units]; got list."),
        ([], f"{expected} []."),
        (
            [[ops.zeros([2, 1, 6])]],
            "`cell_states`: expected shape [batch, units]; got [2, 1, 6] of float32.",
        ),
    ]:
        assert refused(cell.initial_state, memory, 1, states) == message


def test_stacks_of_cells_may_be_in_a_list() -> None:
    inner = [keras.layers.GRUCell(3), keras.layers.GRUCell(4)]
    cells = [keras.layers.StackedRNNCells(inner), keras.layers.GRUCell(5)]
    assert AttentionCell(cells, NoAttention()).cells == [*inner, cells[1]]


def test_numbers_of_units_may_be_numpys() -> None:
    five = np.int64(5)
    cell = AttentionCell(keras.layers.GRUCell(6), KMemoryAttention(five), mixing_units=five)
    memory = cell.attention.prepare(ops.zeros([2, 5, 4]))
    outputs, scores, _ = cell(ops.zeros([2, 1, 3]), memory, cell.initial_state(memory, 1))
    assert outputs.shape[-1] == scores.shape[-1] == 5
    json.dumps(cell.get_config())

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from seq2seq_memattn.attention.base import Attention
from seq2seq_memattn.attention.k_memory import KMemoryAttention
from seq2seq_memattn.attention.no_attention import NoAttention
from seq2seq_memattn.layers.attention_cell import AttentionCell
from seq2seq_memattn.layers.teacher_forcing import TeacherForcedDecoder
from seq2seq_memattn.loops import scan
from tests.inputs import mask_of, normal, randomise, tensor
from tests.layers.test_attention_cell import ATTENTIONS, VARIANTS, Halving, build, first_states
from tests.loops.test_scan import run
from tests.marks import slow
from tests.tolerances import as_array, assert_close

TARGET_LENGTH, SOURCE_LENGTH, ENCODER_UNITS, EMBEDDING_DIM = 4, 5, 7, 6
LENGTHS, SOURCE_LENGTHS = (2, 4), (5, 3)
REAL = mask_of(LENGTHS, TARGET_LENGTH)
MASK = mask_of(SOURCE_LENGTHS, SOURCE_LENGTH)
EMBEDDED = normal(len(LENGTHS), TARGET_LENGTH, EMBEDDING_DIM)
ENCODER_OUTPUTS = normal(len(LENGTHS), SOURCE_LENGTH, ENCODER_UNITS)

attentions = pytest.mark.parametrize("attention", ATTENTIONS)
# Each attention and each variant occurs in the quick tests; all pairs are slow tests.
PAIRS = [(attention, variant) for attention in ATTENTIONS for variant in VARIANTS]
FIRST = [pair for pair in PAIRS if "k_memory" in pair or "reference" in pair]
attentions_and_variants = pytest.mark.parametrize(
    ("attention", "variant"), [*FIRST, *slow(*(pair for pair in PAIRS if pair not in FIRST))]
)


def decode(
    cell: AttentionCell, training: bool, embedded: Any, outputs: Any, cell_states: Any, **given: Any
) -> Any:
    """The outputs of all steps, 0 on padding."""
    lengths, mask = given.get("lengths", LENGTHS), given.get("mask", MASK)
    decoder = TeacherForcedDecoder(cell, dropout=0.0, seed_generator=None)
    memory = cell.attention.prepare(outputs, tensor(mask, "bool"))
    decoded = decoder(embedded, tensor(lengths, "int32"), memory, cell_states, training).outputs
    real = mask_of(lengths, embedded.shape[1])[:, :, None]
    return decoded * tensor(real, decoded.dtype)


def tensors(cell: AttentionCell) -> list[Any]:
    arrays = [EMBEDDED, ENCODER_OUTPUTS, first_states(cell)]
    return [keras.tree.map_structure(lambda x: tensor(x, cell.compute_dtype), x) for x in arrays]


def step_by_step(cell: AttentionCell, embedded: Any, outputs: Any, cell_states: Any) -> Any:
    """The outputs of single steps of the cell, 0 on padding."""
    memory = cell.attention.prepare(outputs, tensor(MASK, "bool"))
    state, every = cell.initial_state(memory, 1, cell_states), []
    for step in range(TARGET_LENGTH):
        output, _, state = cell(embedded[:, step, None], memory, state)
        every.append(output[:, 0])
    return as_array(ops.stack(every, axis=1)) * REAL[:, :, None]


@attentions_and_variants
@pytest.mark.parametrize(("mode", "training"), [("eager", True), *slow(("eager_padded", False))])
def test_teacher_forcing_equals_single_steps(
    attention: str, variant: str, mode: str, training: bool
) -> None:
    cell = build(attention, **VARIANTS[variant])
    decoded = run(mode, lambda *inputs: decode(cell, training, *inputs), *tensors(cell))
    assert_close(decoded, step_by_step(cell, *tensors(cell)), "float64")


@pytest.mark.parametrize(
    ("variant", "mode", "dtype"),
    [
        ("reference", "graph", "float32"),
        ("unfed", "graph", "float64"),
        ("before", "xla", "float64"),
    ],
)
def test_compiled_teacher_forcing_equals_single_steps(variant: str, mode: str, dtype: str) -> None:
    cell = build("k_memory", "gru", dtype=dtype, **VARIANTS[variant])
    decoded = run(mode, lambda *inputs: decode(cell, True, *inputs), *tensors(cell))
    assert_close(decoded, step_by_step(cell, *tensors(cell)), dtype)


@attentions
@pytest.mark.parametrize(("kind", "layers"), [("lstm", 1), ("gru", 3), ("simple", 2)])
def test_reading_in_parallel_equals_stepping(
    attention: str, kind: str, layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = build(attention, kind, layers, **VARIANTS["unfed"])
    run_parallel, ran = TeacherForcedDecoder._run_parallel, []

    def counted(*arguments: Any) -> Any:
        ran.append(True)
        return run_parallel(*arguments)

    monkeypatch.setattr(TeacherForcedDecoder, "_run_parallel", counted)
    parallel = decode(cell, True, *tensors(cell))
    assert ran
    monkeypatch.setattr(TeacherForcedDecoder, "_is_parallel", lambda *_: False)
    assert_close(decode(cell, True, *tensors(cell)), parallel, "float64")


class ByInputs(KMemoryAttention):
    """An attention without a state whose scores also depend on the embeddings fed back."""

    needs_inputs = True

    def score(
        self, queries: Any, memory: Any, state: Any = (), inputs: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        scores, state = super().score(queries, memory, state)
        return scores * ops.sum(inputs, axis=-1, keepdims=True), state


@pytest.mark.parametrize("mode", ["eager", "eager_padded"])
def test_reading_in_parallel_hands_on_the_inputs_to_an_attention_that_needs_them(mode: str) -> None:
    inner = keras.layers.LSTMCell(8, dtype="float64")
    attention = ByInputs(4, dtype="float64")
    cell = AttentionCell(inner, attention, input_feeding=False, dtype="float64")
    embedded, outputs = tensor(EMBEDDED, "float64"), tensor(ENCODER_OUTPUTS, "float64")
    memory = attention.prepare(outputs)
    cell(embedded[:, :1], memory, cell.initial_state(memory, 1))
    randomise(cell)
    decoded = run(mode, lambda *inputs: decode(cell, True, *inputs), *tensors(cell))
    assert_close(decoded, step_by_step(cell, *tensors(cell)), "float64")


@pytest.mark.parametrize("fed", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_the_cell_may_be_a_users_own(fed: bool, training: bool) -> None:
    inner = [Halving(8, dtype="float64"), Halving(9, dtype="float64")]
    attention = KMemoryAttention(4, dtype="float64")
    cell = AttentionCell(inner, attention, input_feeding=fed, dtype="float64")
    embedded, outputs = tensor(EMBEDDED, "float64"), tensor(ENCODER_OUTPUTS, "float64")
    states = [[tensor(normal(len(LENGTHS), units), "float64")] for units in (8, 9)]
    step_by_step(cell, embedded, outputs, states)
    randomise(cell)
    expected = step_by_step(cell, embedded, outputs, states)
    assert_close(decode(cell, training, embedded, outputs, states), expected, "float64")


@attentions
def test_padding_is_zero_where_steps_are_taken(attention: str) -> None:
    cell = build(attention, **VARIANTS["before_unfed"])
    decoder = TeacherForcedDecoder(cell, dropout=0.0, seed_generator=None)
    embedded, outputs, states = tensors(cell)
    memory = cell.attention.prepare(outputs, MASK)
    decoded = as_array(decoder(embedded, tensor(LENGTHS, "int32"), memory, states, False).outputs)
    assert not decoded[~REAL].any()


@attentions
@pytest.mark.parametrize(
    ("variant", "mode"),
    [("reference", "eager"), ("reference", "eager_padded"), *slow(("unfed", "eager"))],
)
def test_padding_and_the_other_sentences_change_nothing(
    attention: str, variant: str, mode: str
) -> None:
    cell = build(attention, **VARIANTS[variant])
    embedded, outputs, states = tensors(cell)
    together = decode(cell, False, embedded, outputs, states)
    padded = [
        ops.pad(x, [[0, 0], [0, more], [0, 0]], constant_values=9.0)
        for x, more in [(embedded, 3), (outputs, 2)]
    ]
    mask = mask_of(SOURCE_LENGTHS, SOURCE_LENGTH + 2)
    longer = run(mode, lambda *x: decode(cell, False, *x, mask=mask), *padded, states)
    assert_close(longer[:, :TARGET_LENGTH], together, "float64")
    for row, length in enumerate(LENGTHS):
        alone = run(
            mode,
            lambda *x, row=row: decode(
                cell, False, *x, lengths=LENGTHS[row : row + 1], mask=MASK[row : row + 1]
            ),
            embedded[row : row + 1, :length],
            outputs[row : row + 1],
            keras.tree.map_structure(lambda x, row=row: x[row : row + 1], states),
        )
        assert_close(alone[0], together[row, :length], "float64")


# Gradients


def gradients_of(cell: AttentionCell, training: bool, *inputs: Any) -> Any:
    """Gradients of every weight, the embeddings, the encoder's outputs and the first states."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        decoded = decode(cell, training, *inputs)
        loss = ops.sum(decoded * tensor(normal(*decoded.shape), decoded.dtype))
    weights = [variable.value for variable in cell.trainable_variables]
    return tape.gradient(loss, [weights, *inputs], unconnected_gradients="zero")


def check_gradients(cell: AttentionCell, mode: str, dtype: str) -> None:
    deferred = run(mode, lambda *inputs: gradients_of(cell, True, *inputs), *tensors(cell))
    inputs = tensors(cell)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        memory = cell.attention.prepare(inputs[1], tensor(MASK, "bool"))
        state, every = cell.initial_state(memory, 1, inputs[2]), []
        for step in range(TARGET_LENGTH):
            output, _, state = cell(inputs[0][:, step, None], memory, state)
            every.append(output[:, 0])
        decoded = ops.stack(every, axis=1) * tensor(REAL[:, :, None], dtype)
        loss = ops.sum(decoded * tensor(normal(*decoded.shape), dtype))
    weights = [variable.value for variable in cell.trainable_variables]
    plain = tape.gradient(loss, [weights, *inputs], unconnected_gradients="zero")
    assert_close(deferred, plain, dtype)


@attentions_and_variants
def test_gradients_taken_after_the_loop_equal_those_of_single_steps(
    attention: str, variant: str
) -> None:
    check_gradients(build(attention, **VARIANTS[variant]), "eager", "float64")


@pytest.mark.parametrize(
    ("attention", "kind", "variant", "mode", "dtype"),
    [
        ("k_memory", "lstm", "reference", "graph", "float32"),
        ("bahdanau", "gru", "reference", "xla", "float64"),
        *slow(
            ("bahdanau", "gru", "before", "graph", "float64"),
            ("k_memory", "lstm", "reference", "xla", "float64"),
        ),
    ],
)
def test_compiled_gradients_equal_those_of_single_steps(
    attention: str, kind: str, variant: str, mode: str, dtype: str
) -> None:
    cell = build(attention, kind, dtype=dtype, **VARIANTS[variant])
    check_gradients(cell, mode, dtype)


class Doubled(KMemoryAttention):
    """An attention with a `combine` of its own."""

    def combine(self, scores: Any, rows: Any) -> Any:
        return 2.0 * ops.matmul(scores, rows)


def test_an_attention_may_combine_in_its_own_way() -> None:
    cells = [keras.layers.LSTMCell(8, dtype="float64")]
    cell = AttentionCell(cells, Doubled(4, dtype="float64"), dtype="float64")
    memory = cell.attention.prepare(tensor(ENCODER_OUTPUTS))
    cell(tensor(EMBEDDED[:, :1]), memory, cell.initial_state(memory, 1))
    randomise(cell)
    decoded = decode(cell, True, *tensors(cell))
    assert_close(decoded, step_by_step(cell, *tensors(cell)), "float64")
    check_gradients(cell, "eager", "float64")


# Dropout. Cells that output their inputs show which of them were dropped.


class Echo(keras.layers.Layer):
    """A cell that outputs its input, of width `units`."""

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = self.state_size = self.output_size = units

    def call(self, inputs: Any, states: Any) -> Any:
        return inputs, [inputs]


class Ones(Attention):
    """An attention whose context is ones, of width `ENCODER_UNITS`."""

    def prepare(self, encoder_outputs: Any, mask: Any = None) -> Any:
        return KMemoryAttention(1).prepare(encoder_outputs, mask)

    def score(
        self, queries: Any, memory: Any, state: Any = (), inputs: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        return ops.ones_like(queries[:, :, :1]), state

    def combine(self, scores: Any, rows: Any) -> Any:
        return ops.ones_like(ops.matmul(scores, rows))


BATCH, STEPS = 11, 13


def echo(layers: int, fed: bool) -> Any:
    """A function of (batch, training): the top cell's inputs at each step, for inputs of ones."""
    attention = Ones() if fed else NoAttention()
    width = EMBEDDING_DIM + (ENCODER_UNITS if fed else 0)
    cells = [Echo(width) for _ in range(layers)]
    cell = AttentionCell(cells, attention, mixing_from="output")
    decoder = TeacherForcedDecoder(cell, 0.5, keras.random.SeedGenerator(3))

    def call(embedded: Any, lengths: Any, outputs: Any, training: bool) -> Any:
        memory = cell.attention.prepare(outputs)
        states = cell.initial_state(memory, 1)
        if not cell.built:
            cell(embedded[:, :1], memory, states)
        first = keras.tree.map_structure(lambda x: x[:, 0], states.cells)
        return decoder(embedded, lengths, memory, first, training).outputs

    def seen(batch: int, training: bool = True, steps: int = STEPS) -> Any:
        return call(
            tensor(np.ones([batch, steps, EMBEDDING_DIM])),
            tensor([steps] * batch, "int32"),
            tensor(np.ones([batch, 2, ENCODER_UNITS])),
            training,
        )

    return seen


@pytest.mark.parametrize("fed", [True, False])
@pytest.mark.parametrize("packed", [True, False], ids=["packed", "padded"])
def test_dropout_is_drawn_for_each_step_and_sentence_of_batches_of_any_size(
    fed: bool, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "has_static_shapes", lambda: not packed)
    see = echo(1, fed)

    def seen(batch: int) -> Any:
        return as_array(see(batch))

    first = seen(BATCH)
    for values in (first, seen(BATCH - 4), seen(BATCH)):
        later = values[:, 1:]  # the first step has no context
        assert set(np.unique(later)) == {0.0, 2.0}
        assert 0.4 < np.mean(later > 0) < 0.6
        assert len({tuple(row) for row in later[0]}) > 6  # different masks in 12 steps
        assert len({tuple(row) for row in later[:, 0]}) > 4
        assert len({tuple(row) for row in later[0, :, -5:]}) > 6
    assert (values != first).any()


@pytest.mark.parametrize("fed", [True, False])
def test_dropout_is_applied_to_the_inputs_of_every_cell(fed: bool) -> None:
    later = as_array(echo(2, fed)(BATCH))[:, 1:]
    assert set(np.unique(later)) == {0.0, 4.0}
    assert 0.2 < np.mean(later > 0) < 0.3


@pytest.mark.parametrize("fed", [True, False])
def test_dropout_is_off_outside_of_training(fed: bool) -> None:
    seen = echo(2, fed)
    values = as_array(seen(BATCH, training=False))
    assert (values[:, 1:] == 1.0).all()


@pytest.mark.parametrize("fed", [True, False])
def test_a_graph_draws_dropout_anew_at_each_call(fed: bool) -> None:
    cell = build("k_memory", dtype="float32", input_feeding=fed)
    decoder = TeacherForcedDecoder(cell, 0.5, keras.random.SeedGenerator(3))

    @tf.function(reduce_retracing=True)
    def compute(embedded: Any, lengths: Any, outputs: Any) -> Any:
        memory = cell.attention.prepare(outputs)
        zeros = [[tf.zeros([tf.shape(embedded)[0], 8])] * 2] * 2
        return decoder(embedded, lengths, memory, zeros, True).outputs

    def call(batch: int) -> Any:
        lengths = tensor(LENGTHS[:batch], "int32")
        return as_array(compute(tensor(EMBEDDED[:batch]), lengths, tensor(ENCODER_OUTPUTS[:batch])))

    assert (call(2) != call(2)).any()
    assert call(1).shape == (1, TARGET_LENGTH, 8 + ENCODER_UNITS)

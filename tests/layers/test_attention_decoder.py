"""The public layer; `test_teacher_forcing.py` tests that its loops take the cell's steps."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from seq2seq_memattn.attention.additive import BahdanauAttention
from seq2seq_memattn.attention.base import Attention
from seq2seq_memattn.attention.k_memory import KMemoryAttention
from seq2seq_memattn.attention.local import LocalAttention
from seq2seq_memattn.attention.multiplicative import LuongAttention
from seq2seq_memattn.attention.no_attention import NoAttention
from seq2seq_memattn.compute.private import attached_mask
from seq2seq_memattn.compute.seeds import SeedGenerator
from seq2seq_memattn.layers.attention_cell import AttentionCell
from seq2seq_memattn.layers.attention_decoder import AttentionDecoder
from seq2seq_memattn.layers.bridge import Bridge
from tests.errors import refused
from tests.inputs import mask_of, normal, randomise, tensor
from tests.layers.stepping import OwnCell, dropped_in_two_calls, step_by_step
from tests.marks import slow
from tests.running import run_python
from tests.tolerances import as_array, assert_close

BATCH, TARGET_LENGTH, SOURCE_LENGTH, WIDTH, ENCODER_UNITS, UNITS = 2, 4, 5, 6, 7, 8
LENGTHS, SOURCE_LENGTHS = (2, 4), (5, 3)
REAL, MASK = mask_of(LENGTHS, TARGET_LENGTH), mask_of(SOURCE_LENGTHS, SOURCE_LENGTH)
INPUTS = normal(BATCH, TARGET_LENGTH, WIDTH)
OUTPUTS = normal(BATCH, SOURCE_LENGTH, ENCODER_UNITS)


ATTENTIONS: dict[str, Any] = {
    "k_memory": lambda: KMemoryAttention(4, dtype="float64"),
    "windowed": lambda: LocalAttention(1, 5, dtype="float64"),
    "none": lambda: NoAttention(dtype="float64"),
}
CELLS: dict[str, Any] = {
    "lstm": lambda: keras.layers.LSTMCell(UNITS, dtype="float64"),
    "stacked": lambda: [
        keras.layers.GRUCell(UNITS, dtype="float64"),
        OwnCell(UNITS, dtype="float64"),
    ],
}


def make(attention: str = "k_memory", cell: str = "lstm", **options: Any) -> AttentionDecoder:
    """A decoder with random weights that returns outputs, alignments and states."""
    decoder = AttentionDecoder(
        CELLS[cell](),
        ATTENTIONS[attention](),
        dtype="float64",
        **{"return_alignments": True, "return_state": True, **options},
    )
    call(decoder)
    randomise(decoder)
    return decoder


def call(decoder: AttentionDecoder, **more: Any) -> Any:
    return decoder(
        tensor(INPUTS, "float64"),
        tensor(OUTPUTS, "float64"),
        inputs_mask=tensor(REAL, "bool"),
        encoder_outputs_mask=tensor(MASK, "bool"),
        **more,
    )


def step_by_hand(decoder: AttentionDecoder) -> list[Any]:
    inputs, outputs = tensor(INPUTS, "float64"), tensor(OUTPUTS, "float64")
    return step_by_step(decoder.cell, inputs, REAL, outputs, tensor(MASK, "bool"))


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("fed", [True, False], ids=["fed", "unfed"])
def test_outputs_alignments_and_states_are_those_of_single_steps(
    attention: str, cell: str, fed: bool
) -> None:
    decoder = make(attention, cell, mixing_units=9, input_feeding=fed)
    for training in (False, True):
        outputs, alignments, state = call(decoder, training=training)
        assert_close([outputs, alignments, state], step_by_hand(decoder), "float64")


def test_an_attention_cell_of_ones_own_gives_the_same() -> None:
    decoder = make(mixing_units=9)
    again = AttentionDecoder(decoder.cell, dtype="float64")
    assert_close(call(again), call(decoder)[0], "float64")


# Masks


def test_keras_hands_on_masks_and_padding_changes_nothing() -> None:
    source, target = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    embedding = keras.layers.Embedding(9, WIDTH, mask_zero=True)
    encoder = keras.layers.GRU(ENCODER_UNITS, return_sequences=True)
    decoder = AttentionDecoder(
        keras.layers.GRUCell(UNITS),
        KMemoryAttention(4, encoder_score="sigmoid"),
        return_alignments=True,
    )
    decoded = decoder(embedding(target), encoder(embedding(source)))
    assert decoded[0].shape == (None, None, UNITS + ENCODER_UNITS)
    assert decoded[1].shape == (None, None, None)
    model = keras.Model([source, target], decoded)
    short = model([tensor([[3, 4]], "int32"), tensor([[1, 5, 6]], "int32")])
    long = model([tensor([[3, 4, 0, 0]], "int32"), tensor([[1, 5, 6, 0]], "int32")])
    assert_close(long[0][:, :3], short[0])
    assert_close(long[1][:, :3, :2], short[1])
    for padding in (long[0][:, 3:], long[1][:, 3:], long[1][:, :, 2:]):
        assert not as_array(padding).any()
    attached = keras.src.backend.get_keras_mask(long[0])
    assert as_array(attached).tolist() == [[True, True, True, False]]
    assert keras.src.backend.get_keras_mask(long[1]) is None


def masked_model(given: bool) -> keras.Model:
    """A model of embedded targets and sources; the mask is an argument or attached by Keras."""
    target, source = keras.Input((None, WIDTH)), keras.Input((None, ENCODER_UNITS))
    masking = keras.layers.Masking()
    mask = {"inputs_mask": ops.any(target != 0.0, axis=-1)} if given else {}
    decoder = AttentionDecoder(keras.layers.GRUCell(UNITS), KMemoryAttention(4), return_state=True)
    outputs, _ = decoder(target if given else masking(target), source, **mask)
    return keras.Model([target, source], keras.layers.Dense(3, name="logits")(outputs))


@pytest.mark.parametrize("jit_compile", [False, *slow(True)])
def test_a_keras_loss_ignores_what_a_given_mask_leaves_out(jit_compile: bool) -> None:
    arrays = [INPUTS * REAL[:, :, None], OUTPUTS]
    losses, models = [], [masked_model(given) for given in (True, False)]
    randomise(models[0])
    models[1].set_weights(models[0].get_weights())
    for labels in (np.where(REAL, 1, 0), np.where(REAL, 1, 2)):  # other labels on padding
        for model in models:
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model.compile(keras.optimizers.SGD(0.0), loss, jit_compile=jit_compile)
            losses += model.fit(arrays, labels, verbose=0).history["loss"]
    np.testing.assert_allclose(losses, losses[:1] * 4, rtol=1e-5)
    attached = attached_mask(models[0]([tensor(array) for array in arrays]))
    np.testing.assert_array_equal(as_array(attached), REAL)


def test_a_mask_given_wins_over_the_attached_one() -> None:
    decoder = make(return_alignments=False, return_state=False)
    inputs = keras.layers.Masking()(tensor(INPUTS, "float64"))
    found = decoder(inputs, tensor(OUTPUTS, "float64"), inputs_mask=REAL)
    np.testing.assert_array_equal(as_array(attached_mask(found)), REAL)
    assert as_array(attached_mask(inputs)).all()


# First states


def test_states_of_a_bidirectional_layer_are_joined() -> None:
    decoder = make()
    halves = [normal(BATCH, UNITS // 2, seed=index) for index in range(4)]
    joined = [np.concatenate([halves[i], halves[i + 2]], axis=1) for i in range(2)]
    found = call(decoder, initial_state=[tensor(half, "float64") for half in halves])
    expected = call(decoder, initial_state=[tensor(whole, "float64") for whole in joined])
    assert_close(found, expected, "float64")
    assert np.abs(as_array(found[0]) - as_array(call(decoder)[0])).max() > 1e-3


def test_a_flat_list_of_the_states_of_several_layers_is_refused() -> None:
    cells = [keras.layers.GRUCell(4), keras.layers.GRUCell(4)]
    decoder = AttentionDecoder(cells, KMemoryAttention(3))
    inputs, outputs = ops.zeros([2, 3, 5]), ops.zeros([2, 6, 4])
    forward, backward = ops.ones([2, 2]), 2.0 * ops.ones([2, 2])
    message = refused(decoder, inputs, outputs, [forward, backward, forward, backward])
    assert message.startswith("`initial_state`: expected a list of states for each cell, such as")
    states = decoder.cell_states([[forward, backward], [forward, backward]])
    assert [as_array(state)[0].tolist() for (state,) in states] == 2 * [[1.0, 1.0, 2.0, 2.0]]


def test_a_cells_own_first_state_is_used_and_trained() -> None:
    decoder = make(cell="stacked", return_alignments=False, return_state=False)
    own = decoder.cell.cells[1]
    with tf.GradientTape() as tape:
        loss = ops.sum(call(decoder, training=True))
    gradient = tape.gradient(loss, own.first.value)
    assert gradient is not None and np.abs(as_array(gradient)).min() > 0
    before = as_array(call(decoder))
    own.first.assign(own.first + 1.0)
    assert np.abs(as_array(call(decoder)) - before).max() > 1e-3


def test_a_target_without_steps_keeps_its_first_states() -> None:
    decoder = make()
    first = [normal(BATCH, UNITS, seed=index) for index in range(2)]
    _, _, state = decoder(
        tensor(INPUTS, "float64"),
        tensor(OUTPUTS, "float64"),
        [tensor(array, "float64") for array in first],
        inputs_mask=tensor(mask_of((0, 4), TARGET_LENGTH), "bool"),
    )
    for array, expected in zip(state, first, strict=True):
        assert_close(array[0], expected[0], "float64")
        assert np.abs(as_array(array[1]) - expected[1]).max() > 1e-3


# Dropout


def test_dropout_is_drawn_anew_in_training_alone() -> None:
    decoder = make(mixing_units=9, dropout=0.5, seed=3, return_state=False)
    first, second = (as_array(call(decoder, training=True)[0]) for _ in range(2))
    assert np.abs(first - second).max() > 1e-3
    assert_close(call(decoder), call(decoder))


ON_JAX = """
import sys

sys.modules["tensorflow"] = None  # importing it fails from here on
import os

os.environ["KERAS_BACKEND"] = "jax"

import json

from seq2seq_memattn import KMemoryAttention, NoAttention
from tests.layers.stepping import dropped_in_two_calls

print(json.dumps([dropped_in_two_calls(each) for each in (KMemoryAttention(5), NoAttention())]))
"""


@pytest.mark.parametrize("backend", ["tensorflow", *slow("jax")])
def test_dropout_inside_a_users_cell_is_drawn_anew_at_each_step(backend: str) -> None:
    if backend == "jax":
        process = run_python("-c", ON_JAX)
        assert process.returncode == 0, process.stderr.decode()[-3000:]
        every = json.loads(process.stdout)
    else:
        every = [dropped_in_two_calls(each) for each in (KMemoryAttention(5), NoAttention())]
    for outputs in every:
        shown = np.reshape(outputs, (2 * 4, 32))
        assert len(np.unique(shown > 0, axis=0)) == len(shown)
        assert shown[shown > 0].min() < 2  # twice the weights, which were 1 before the update


# Files


def test_what_is_shared_is_shared_after_loading(tmp_path: Path) -> None:
    source, target = keras.Input((None, WIDTH)), keras.Input((None, WIDTH))
    attention, cell = BahdanauAttention(5), keras.layers.GRUCell(UNITS)
    decoders = [AttentionDecoder(cell, attention, name=name) for name in ("first", "second")]
    decoded = [decoder(target, source) for decoder in decoders]
    model = keras.Model([source, target], keras.layers.Concatenate()(decoded))
    randomise(model)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    first, second = (again.get_layer(name).cell for name in ("first", "second"))
    assert first.cells[0] is second.cells[0]
    assert first.attention is second.attention
    assert len(again.weights) == len(model.weights)
    arrays = [normal(BATCH, 5, WIDTH), normal(BATCH, 4, WIDTH)]
    assert_close(again(arrays), model(arrays))


# Errors


def test_wrong_arguments_are_refused_when_the_layer_is_made() -> None:
    cell, attention = keras.layers.GRUCell(UNITS), KMemoryAttention(4)
    assert "expected an Attention" in refused(AttentionDecoder, cell)
    assert "got <AdditiveAttention" in refused(
        AttentionDecoder, cell, keras.layers.AdditiveAttention()
    )
    assert "`dropout` must be in [0, 1); got 1.0" in refused(
        AttentionDecoder, cell, attention, dropout=1.0
    )
    ready = AttentionCell(cell, attention)
    for options in ({"attention": attention}, {"mixing_units": 3}, {"read": "before"}):
        assert "pass these options to it" in refused(AttentionDecoder, ready, **options)
    assert "`cell`: expected dtype policy mixed_bfloat16" in refused(
        AttentionDecoder, cell, attention, dtype="mixed_bfloat16"
    )
    narrow = keras.layers.GRUCell(UNITS, dtype="mixed_bfloat16")
    assert "`attention`: expected dtype policy mixed_bfloat16, that of the AttentionCell" in (
        refused(AttentionDecoder, narrow, attention, dtype="mixed_bfloat16")
    )


class Residual(keras.layers.StackedRNNCells):
    def call(self, inputs: Any, states: Any, **options: Any) -> Any:
        outputs, states = super().call(inputs, states, **options)
        return outputs + inputs, states


class NoLayer:
    state_size = 7

    def call(self, inputs: Any, states: Any) -> Any:
        return inputs, states


class Doubled(AttentionCell):
    def call(self, *given: Any, **options: Any) -> Any:
        outputs, *others = super().call(*given, **options)
        return (2.0 * outputs, *others)


def test_a_cell_whose_call_would_not_run_is_refused() -> None:
    cell = Doubled(keras.layers.GRUCell(7), KMemoryAttention(4))
    assert refused(AttentionDecoder, cell).endswith("so Doubled.call never would.")


def test_dropout_may_be_changed_later() -> None:
    decoder = AttentionDecoder(keras.layers.GRUCell(7), KMemoryAttention(4), dropout=0.5)
    given = [keras.random.normal([2, 5, 3]), keras.random.normal([2, 4, 6])]
    assert np.any(as_array(decoder(*given, training=True)) != as_array(decoder(*given)))
    decoder.dropout = 0.0
    assert decoder.get_config()["dropout"] == 0.0
    assert_close(decoder(*given, training=True), as_array(decoder(*given)))
    with pytest.raises(ValueError, match="`dropout` must be in"):
        decoder.dropout = 1.0


def test_what_is_no_cell_is_refused() -> None:
    for given, got in [
        (keras.layers.GRU(7), "GRU"),
        (keras.layers.Dense(7), "Dense"),
        ("gru", "'gru'"),
        ([], "[]"),
        ([keras.layers.GRUCell(7), None], "None"),
        (Residual([keras.layers.GRUCell(7)]), "Residual"),
        (NO_LAYER := NoLayer(), repr(NO_LAYER)),
    ]:
        message = refused(AttentionDecoder, given, KMemoryAttention(4))
        assert message == f"`cell`: expected a Keras RNN cell, such as GRUCell; got {got}."


def test_a_cell_in_two_places_is_refused() -> None:
    cell = keras.layers.GRUCell(UNITS)
    message = refused(AttentionDecoder, [cell, cell], KMemoryAttention(4))
    assert message == "`cell`: expected different cells; one is in the list twice."


class Rows(NamedTuple):
    rows: Any
    mask: Any


class Mistaken(Attention):
    """An attention with a mistake, made by `prepare` or in what `score` returns."""

    def __init__(self, prepare: Any, returns_state: bool = True) -> None:
        super().__init__()
        self.make = prepare
        self.returns_state = returns_state

    def prepare(self, encoder_outputs: Any, mask: Any = None) -> Any:
        return self.make(encoder_outputs, mask)

    def score(
        self, queries: Any, memory: Any, state: Any = (), inputs: Any = None, training: bool = False
    ) -> Any:
        scores = queries[:, :, :1] + ops.zeros_like(memory.rows[:, None, :, 0])
        return (scores, state) if self.returns_state else scores


@pytest.mark.parametrize(
    ("attention", "got"),
    [
        (Mistaken(lambda rows, mask: rows), "got SymbolicTensor."),
        (Mistaken(lambda rows, mask: Rows(rows, None)), "got mask=None."),
        (Mistaken(lambda rows, mask: Rows(3, mask)), "got rows=3."),
        (Mistaken(Rows, returns_state=False), "expected a pair, scores and state; got"),
    ],
)
def test_mistakes_of_an_attention_of_ones_own_are_told(attention: Attention, got: str) -> None:
    decoder = AttentionDecoder(keras.layers.GRUCell(UNITS), attention)
    message = refused(decoder, tensor(np.zeros([2, 5, 4])), tensor(np.zeros([2, 9, 6])))
    assert message.startswith("`Mistaken.") and got in message


class WideScores(Attention):
    """An attention of a user's, with scores in float32."""

    def prepare(self, encoder_outputs: Any, mask: Any = None) -> Any:
        return Rows(ops.cast(encoder_outputs, self.compute_dtype), mask)

    def score(
        self, queries: Any, memory: Any, state: Any = (), inputs: Any = None, training: bool = False
    ) -> Any:
        energies = ops.matmul(queries, ops.swapaxes(memory.rows, 1, 2))
        return ops.sigmoid(ops.cast(energies, "float32")), state


@pytest.mark.parametrize("input_feeding", [True, False])
@pytest.mark.parametrize("in_graph", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_scores_may_be_wider_than_the_layer(
    input_feeding: bool, in_graph: bool, training: bool
) -> None:
    policy = "mixed_bfloat16"
    decoder = AttentionDecoder(
        keras.layers.GRUCell(ENCODER_UNITS, dtype=policy),
        WideScores(dtype=policy),
        input_feeding=input_feeding,
        dtype=policy,
    )
    inputs, outputs = tensor(INPUTS, "bfloat16"), tensor(OUTPUTS, "bfloat16")

    def run(inputs: Any, outputs: Any) -> Any:
        with tf.GradientTape() as tape:
            found = decoder(inputs, outputs, training=training)
            loss = ops.sum(ops.cast(found, "float32"))
        return found, tape.gradient(loss, decoder.trainable_variables)

    run(inputs, outputs)
    found, gradients = (tf.function(run) if in_graph else run)(inputs, outputs)
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    assert all(gradient is not None for gradient in gradients)


def test_dropout_of_a_cell_is_refused_and_it_is_said_what_to_do() -> None:
    cell = keras.layers.GRUCell(UNITS, dropout=0.2)
    message = refused(AttentionDecoder, cell, KMemoryAttention(4))
    assert message.startswith(
        "`cell`: expected a cell without dropout; got 0.2. Use the `dropout` of"
    )
    cell = keras.layers.GRUCell(UNITS, recurrent_dropout=0.3)
    assert "without recurrent_dropout; got 0.3" in refused(
        AttentionDecoder, cell, KMemoryAttention(4)
    )
    own = OwnCell(UNITS)
    own.dropout = keras.layers.Dropout(0.1)  # a layer of the cell's own
    AttentionDecoder(own, KMemoryAttention(4))


@pytest.mark.parametrize("score", ["dot", "general"])
def test_widths_that_an_attention_refuses_are_said_in_one_line(score: Any) -> None:
    decoder = AttentionDecoder(keras.layers.GRUCell(UNITS), LuongAttention(score))
    memory = decoder.cell.attention.prepare(tensor(OUTPUTS))
    state = decoder.cell.initial_state(memory, TARGET_LENGTH)
    for message in (
        refused(decoder, tensor(INPUTS), tensor(OUTPUTS)),
        refused(decoder.cell, tensor(INPUTS), memory, state),
    ):
        assert message.startswith("`queries`: expected 7 units, the width of the keys")


def test_states_may_be_given_for_each_cell() -> None:
    decoder = make(cell="stacked")
    first, second = (tensor(normal(BATCH, width), "float64") for width in (UNITS, UNITS + 1))
    expected = call(decoder, initial_state=[first, second])
    assert_close(call(decoder, initial_state=[[first], [second]]), expected)
    bridge = Bridge("dense", [[UNITS], [UNITS + 1]], dtype="float64")
    made = bridge([[[tensor(normal(BATCH, 3), "float64")]]])
    assert_close(
        call(decoder, initial_state=made), call(decoder, initial_state=[*made[0], *made[1]])
    )


def test_states_of_a_bidirectional_layer_for_each_cell_are_joined_within_the_cell() -> None:
    cells = [keras.layers.LSTMCell(4), keras.layers.LSTMCell(4)]
    decoder = AttentionDecoder(cells, BahdanauAttention(3))
    halves = [[normal(BATCH, 2, seed=4 * layer + i) for i in range(4)] for layer in range(2)]
    joined = [
        [np.concatenate([states[i], states[i + 2]], axis=1) for i in range(2)] for states in halves
    ]
    inputs, outputs = tensor(INPUTS), tensor(OUTPUTS)
    found, expected = (
        decoder(inputs, outputs, keras.tree.map_structure(tensor, states))
        for states in (halves, joined)
    )
    assert_close(found, as_array(expected))


def test_masks_may_be_given_by_position() -> None:
    decoder = make()
    arrays = tensor(INPUTS, "float64"), tensor(OUTPUTS, "float64")
    masks = tensor(REAL, "bool"), tensor(MASK, "bool")
    named = decoder(*arrays, inputs_mask=masks[0], encoder_outputs_mask=masks[1])
    assert_close(decoder(*arrays, None, *masks), named)


@pytest.mark.parametrize("kind", [keras.random.SeedGenerator, SeedGenerator])
def test_a_seed_generator_is_saved_and_comes_back(kind: Any, tmp_path: Path) -> None:
    inputs = keras.Input((None, WIDTH)), keras.Input((None, ENCODER_UNITS))
    decoder = AttentionDecoder(
        keras.layers.GRUCell(UNITS),
        KMemoryAttention(4),
        dropout=0.4,
        seed=kind(3),
    )
    model = keras.Model(inputs, decoder(*inputs))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    arrays = [tensor(INPUTS), tensor(OUTPUTS)]
    assert_close(again(arrays, training=True), model(arrays, training=True))
    clone = keras.models.clone_model(model)
    shared = {id(v) for v in clone.variables} & {id(v) for v in model.variables}
    assert not shared


def test_wrong_inputs_are_refused_in_one_line() -> None:
    decoder = make()
    inputs, outputs = tensor(INPUTS, "float64"), tensor(OUTPUTS, "float64")
    for arguments, named, message in [
        ((inputs[:, :, 0], outputs), {}, "`inputs`: expected shape [batch, target_length, units]"),
        ((inputs, outputs[0]), {}, "`encoder_outputs`: expected shape [batch, source_length,"),
        ((inputs[:, :, :5], outputs), {}, "`inputs`: expected units 6; got 5."),
        ((inputs[:, :0], outputs), {}, "`inputs`: expected a target_length of at least 1; got 0."),
        ((inputs, outputs[:, :, :5]), {}, "`encoder_outputs`: expected units 7; got 5."),
        ((inputs, outputs[:1]), {}, "`encoder_outputs`: expected batch 2; got 1."),
        ((inputs, outputs), {"inputs_mask": MASK}, "`inputs_mask`: expected length 4; got 5."),
        ((inputs, outputs), {"encoder_outputs_mask": MASK[0]}, "`encoder_outputs_mask`: expected"),
        ((inputs, outputs), {"inputs_mask": REAL.tolist()}, "`inputs_mask`: expected an array ["),
        ((inputs, outputs, [inputs[:, 0]]), {}, "`initial_state`: expected states [8, 8] wide"),
        ((inputs, outputs, [inputs[:, 0]] * 2), {}, "got [6, 6]. `Bridge` maps an encoder's"),
    ]:
        assert message in refused(decoder, *arguments, **named)


@pytest.mark.parametrize("name", ["inputs", "encoder_outputs"])
def test_a_length_of_0_that_a_graph_does_not_know_is_refused_when_it_runs(name: str) -> None:
    decoder = make()
    given = {"inputs": INPUTS, "encoder_outputs": OUTPUTS}
    specs = [tf.TensorSpec([None, None, array.shape[2]], "float64") for array in given.values()]
    run = tf.function(lambda *arrays: decoder(*arrays)[0], input_signature=specs)
    run(*given.values())
    given[name] = given[name][:, :0]
    message = f"`{name}`: expected a length of at least 1; got 0"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(*given.values())


def test_what_are_no_states_is_refused_in_one_line() -> None:
    decoder = make()
    state = tensor(normal(BATCH, UNITS), "float64")
    for given, message in [
        ([ops.zeros([BATCH, SOURCE_LENGTH, UNITS])] * 2, "shape [batch, units]; got [2, 5, 8] of"),
        ([state[0]] * 2, "shape [batch, units]; got [8] of"),
        ([state, None], "an array [batch, units]; got NoneType."),
        ([[0.0] * UNITS] * BATCH, "an array [batch, units]; got float."),
        ([state, state[:1]], "batch 2; got 1."),
        ([ops.zeros([3, UNITS])] * 2, "batch 2; got 3."),
        ({"hidden": state, "carry": state}, "a list of states; got a dict."),
    ]:
        assert refused(call, decoder, initial_state=given).startswith(
            f"`initial_state`: expected {message}"
        )


def test_wrong_widths_are_refused_while_a_functional_model_is_made() -> None:
    decoder = AttentionDecoder(keras.layers.LSTMCell(UNITS), KMemoryAttention(4))
    target, source = keras.Input((None, WIDTH)), keras.Input((None, ENCODER_UNITS))
    state = keras.Input((UNITS,))
    assert "got [8]" in refused(decoder, target, source, [state])
    unknown_state = keras.Input((None,))
    assert "got [None, None, 8, 8]" in refused(
        decoder, target, source, [unknown_state, unknown_state, state, state]
    )
    encoded = keras.Input((None, UNITS))
    assert "[batch, units]; got [None, None, 8] of float32." in refused(
        decoder, target, source, [encoded, state]
    )
    assert "got [None, None]" in refused(decoder, keras.Input((None,)), source)
    unknown = keras.Input((None, None))
    for arrays, name in [((unknown, source), "inputs"), ((target, unknown), "encoder_outputs")]:
        message = refused(decoder, *arrays)
        assert message == f"`{name}`: expected a known number of units; got None."


def test_a_decoder_that_cannot_be_built_leaves_the_next_one_alone() -> None:
    def fails(shape: Any, dtype: Any) -> Any:
        raise TypeError("no numbers")

    inputs, outputs = normal(2, 3, 4), normal(2, 5, 6)
    with pytest.raises(TypeError, match="no numbers"):
        cell = keras.layers.GRUCell(5, recurrent_initializer=fails)
        AttentionDecoder(cell, KMemoryAttention(3))(inputs, outputs)
    decoder = AttentionDecoder(keras.layers.GRUCell(5), KMemoryAttention(3))
    assert decoder(inputs, outputs).shape == (2, 3, 5 + 6)


def test_gradients_of_gradients_are_right_or_refused() -> None:
    decoder = AttentionDecoder(keras.layers.GRUCell(4), BahdanauAttention(3))
    inputs, outputs = tensor(normal(2, 3, 4)), tensor(normal(2, 5, 4))
    decoder(inputs, outputs)
    weight = decoder.trainable_variables[0]

    def penalty(training: bool) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(outputs)
            loss = ops.sum(ops.square(decoder(inputs, outputs, training=training)))
        return ops.sum(ops.square(tape.gradient(loss, outputs)))

    with tf.GradientTape() as tape:
        found = penalty(training=False)
    gradient = as_array(tape.gradient(found, weight.value))[0, 0]
    values, step = weight.numpy(), np.zeros(weight.shape, np.float32)
    step[0, 0] = 0.02
    weight.assign(values + step)
    above = float(penalty(training=False))
    weight.assign(values - step)
    numeric = (above - float(penalty(training=False))) / 0.04
    assert gradient == pytest.approx(numeric, rel=0.02)
    with tf.GradientTape() as tape, pytest.raises(LookupError, match="with training=False"):
        tape.gradient(penalty(training=True), weight.value)

"""`AttentionCell`, configured as in the guide, equals the `AttentionWrapper` of Addons."""

from pathlib import Path
from typing import Any

import keras
import pytest
from keras import ops

from seq2seq_memattn.attention.multiplicative import LuongAttention
from seq2seq_memattn.layers.attention_cell import AttentionCell
from seq2seq_memattn.layers.attention_decoder import AttentionDecoder
from tests.addons.recorded import Arrays, from_guide, recorded, source_mask
from tests.addons.test_attention import attention_like
from tests.inputs import normal, tensor
from tests.tolerances import assert_close

LSTMCell, GRUCell = keras.layers.LSTMCell, keras.layers.GRUCell
LAYER_SIZE = 9
FedBackCell = from_guide("FedBackCell")


def fed_back(cell: Any, activation: str | None = None) -> Any:
    """A maker of a guide's `FedBackCell` around a cell of some class."""
    return lambda units: FedBackCell(cell(units), LAYER_SIZE, 6, activation)


def stack(units: int) -> Any:
    return keras.layers.StackedRNNCells([LSTMCell(units), GRUCell(units)])


LINEAR = {"mixing_units": LAYER_SIZE, "mixing_activation": "linear"}
# For each wrapper of record.py: the cell and attention, the states, and our arguments.
CASES: dict[str, Any] = {
    "context_fed": (LSTMCell, "bahdanau", ("state_h", "state_c"), {"mixing_from": "output"}),
    "context_out": (GRUCell, "luong", ("state_h",), {}),
    "layer_out": (fed_back(LSTMCell), "luong", (), LINEAR),
    "layer_fed": (fed_back(LSTMCell), "bahdanau", (), {"mixing_from": "output"}),
    "layer_from_states": (fed_back(LSTMCell), "bahdanau", ("state_h", "state_c"), LINEAR),
    "layer_of_stack": (fed_back(stack), "luong", (), LINEAR),
    "tanh_layer_fed": (
        fed_back(GRUCell, "tanh"),
        "luong",
        ("state_h",),
        {"mixing_units": LAYER_SIZE},
    ),
    "nothing_fed": (
        GRUCell,
        "bahdanau",
        ("state_h",),
        {"mixing_units": LAYER_SIZE, "input_feeding": False},
    ),
}


def carried_cell(
    cell: Any, kind: str, arrays: Arrays, inputs: Any, memory: Any, **options: Any
) -> AttentionCell:
    """An `AttentionCell` with the weights of a wrapper.

    Args:
        cell: class of the RNN cell.
        kind: "bahdanau" or "luong".
        arrays: the wrapper's weights by name.
        inputs: float [batch, queries, embedding_dim].
        memory: float [batch, source_length, memory_units].
        options: of the `AttentionCell`.
    """
    units = arrays["cell_1"].shape[0]
    made = AttentionCell(cell(units), attention_like(kind, arrays), **options)
    prepared = made.attention.prepare(memory)
    made(inputs, prepared, made.initial_state(prepared, inputs.shape[1]))  # builds it
    from_guide("carry_cell")(made, arrays)
    return made


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_alignments_of_all_steps_are_those_of_addons(name: str) -> None:
    cell_class, kind, states, options = CASES[name]
    common, expected = recorded("wrapper"), recorded("wrapper", name)
    inputs, encoder_outputs = tensor(common["inputs"]), tensor(common["memory"])
    cell = carried_cell(cell_class, kind, expected, inputs[:, :1], encoder_outputs, **options)
    memory = cell.attention.prepare(encoder_outputs, source_mask())
    first = [[tensor(common[state]) for state in states]] if states else None
    if first and isinstance(cell.cells[0], FedBackCell):
        h = first[0][0]
        first[0] += [ops.zeros_like(h), ops.zeros_like(h[:, :1])]
    state, outputs, alignments = cell.initial_state(memory, 1, first), [], []
    for step in range(inputs.shape[1]):
        output, scores, state = cell(inputs[:, step : step + 1], memory, state)
        outputs.append(output)
        alignments.append(scores)
    assert_close(ops.concatenate(alignments, axis=1), expected["alignments"])
    found = ops.concatenate(outputs, axis=1)
    if name == "context_out":  # the context comes after the cell's output
        found = found[..., expected["cell_1"].shape[0] :]
    assert_close(found, expected["outputs"])


@pytest.mark.parametrize(
    ("name", "cell", "kind", "message"),
    [
        ("layer_out", LSTMCell, "luong", "put the cell into a FedBackCell"),
        ("layer_of_stack", fed_back(LSTMCell), "luong", "expected as many cells|weight list"),
    ],
)
def test_weights_of_another_wrapper_are_refused(
    name: str, cell: Any, kind: str, message: str
) -> None:
    common, arrays = recorded("wrapper"), recorded("wrapper", name)
    inputs, memory = tensor(common["inputs"]), tensor(common["memory"])
    with pytest.raises(ValueError, match=message):
        carried_cell(cell, kind, arrays, inputs[:, :1], memory, mixing_from="output")


def test_a_fed_back_cell_is_saved_and_trained_in_a_decoder(tmp_path: Path) -> None:
    source, target = keras.Input((None, 6)), keras.Input((None, 4))
    decoder = AttentionDecoder(fed_back(stack, "tanh")(7), LuongAttention("general", 7), **LINEAR)
    model = keras.Model([source, target], decoder(target, source))
    model.compile("sgd", "mse")
    x = [normal(3, 5, 6), normal(3, 4, 4)]
    model.fit(x, normal(3, 4, LAYER_SIZE), verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert_close(again(x), model(x))

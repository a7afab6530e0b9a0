"""`AttentionCell`, configured as in the guide, equals the `AttentionWrapper` of Addons."""

from typing import Any

import keras
import pytest
from keras import ops

from seq2seq_memattn.layers.attention_cell import AttentionCell
from tests.addons.recorded import Arrays, guide_function, recorded, source_mask
from tests.addons.test_attention import attention_like
from tests.inputs import tensor
from tests.tolerances import assert_close

LSTMCell, GRUCell = keras.layers.LSTMCell, keras.layers.GRUCell
LAYER_SIZE = 9
# For each wrapper of record.py: the cell and attention, the states, and our arguments.
CASES: dict[str, Any] = {
    "context_fed": (LSTMCell, "bahdanau", ("state_h", "state_c"), {"mixing_from": "output"}),
    "context_out": (GRUCell, "luong", ("state_h",), {}),
    "layer_out": (
        LSTMCell,
        "luong",
        (),
        {"mixing_units": LAYER_SIZE, "mixing_activation": "linear"},
    ),
    "layer_fed": (LSTMCell, "bahdanau", (), {"mixing_from": "output"}),
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
    units = arrays["recurrent_kernel"].shape[0]
    made = AttentionCell(cell(units), attention_like(kind, arrays), **options)
    prepared = made.attention.prepare(memory)
    made(inputs, prepared, made.initial_state(prepared, inputs.shape[1]))  # builds it
    guide_function("carry_cell")(made, arrays)
    return made


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_alignments_of_all_steps_are_those_of_addons(name: str) -> None:
    cell_class, kind, states, options = CASES[name]
    common, expected = recorded("wrapper"), recorded("wrapper", name)
    inputs, encoder_outputs = tensor(common["inputs"]), tensor(common["memory"])
    cell = carried_cell(cell_class, kind, expected, inputs[:, :1], encoder_outputs, **options)
    memory = cell.attention.prepare(encoder_outputs, source_mask())
    first = [[tensor(common[state]) for state in states]] if states else None
    state, outputs, alignments = cell.initial_state(memory, 1, first), [], []
    for step in range(inputs.shape[1]):
        output, scores, state = cell(inputs[:, step : step + 1], memory, state)
        outputs.append(output)
        alignments.append(scores)
    assert_close(ops.concatenate(alignments, axis=1), expected["alignments"])
    found = ops.concatenate(outputs, axis=1)
    if name == "context_out":  # the context comes after the cell's output
        found = found[..., expected["recurrent_kernel"].shape[0] :]
    assert_close(found, expected["outputs"])


@pytest.mark.parametrize(
    ("name", "more"), [("context_out", {"layer_kernel": 0}), ("layer_fed", {"layer_bias": 0})]
)
def test_a_layer_that_cannot_be_fed_back_is_refused(name: str, more: dict[str, Any]) -> None:
    cell_class, kind, _, options = CASES[name]
    common, arrays = recorded("wrapper"), {**recorded("wrapper", name), **more}
    inputs, memory = tensor(common["inputs"]), tensor(common["memory"])
    with pytest.raises(ValueError, match="only a layer without bias can be fed back"):
        fed = {**options, "input_feeding": True}
        carried_cell(cell_class, kind, arrays, inputs[:, :1], memory, **fed)

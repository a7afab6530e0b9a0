"""Users' own cells, and single steps of a decoder's cell, to which decoders are compared."""

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from seq2seq_memattn.attention.base import Attention
from seq2seq_memattn.layers.attention_cell import AttentionCell
from seq2seq_memattn.layers.attention_decoder import AttentionDecoder
from tests.tolerances import as_array


@keras.saving.register_keras_serializable(package="tests")
class OwnCell(keras.layers.Layer):
    """A user's cell whose output differs from its state and whose first state is a weight."""

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = self.output_size = units
        self.state_size = [units + 1]
        self.to_state = keras.layers.Dense(units + 1, dtype=self.dtype_policy)
        self.to_output = keras.layers.Dense(units, dtype=self.dtype_policy)

    def build(self, input_shape: Any) -> None:
        self.first = self.add_weight(shape=(1, self.units + 1), initializer="ones", name="first")
        self.to_state.build((None, input_shape[-1] + self.units + 1))
        self.to_output.build((None, self.units + 1))
        self.built = True

    def call(self, inputs: Any, states: Any) -> Any:
        state = ops.tanh(self.to_state(ops.concatenate([inputs, states[0]], axis=-1)))
        return self.to_output(state), [state]

    def get_initial_state(self, batch_size: Any = None) -> list[Any]:
        first = ops.convert_to_tensor(self.first)
        return [ops.broadcast_to(first, (batch_size, self.units + 1))]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


class DroppingCell(keras.layers.Layer):
    """A user's cell with a `Dropout` layer: shows its weights, some of them dropped."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.state_size = units
        self.drop = keras.layers.Dropout(0.5)

    def build(self, input_shape: Any) -> None:
        del input_shape
        self.shown = self.add_weight((self.state_size,), initializer="ones", name="shown")
        self.built = True

    def call(self, inputs: Any, states: Any) -> Any:
        del inputs
        shown = self.drop(ops.ones_like(states[0]) * self.shown)
        return shown, [shown]


def dropped_in_two_calls(attention: Attention) -> Any:
    """The outputs of a `DroppingCell` in training, after an update: nested lists [2, 4, units]."""
    target, source = keras.Input((None, 2)), keras.Input((None, 3))
    decoder = AttentionDecoder(DroppingCell(32), attention, mixing_from="output")
    model = keras.Model([target, source], decoder(target, source))
    arrays = [np.ones((1, 4, 2)), np.ones((1, 3, 3))]
    model.compile(keras.optimizers.SGD(1.0), "mse")
    model.fit(arrays, np.zeros((1, 4, 32)), verbose=0)
    return [np.array(model(arrays, training=True))[0].tolist() for _ in range(2)]


def step_by_step(
    cell: AttentionCell,
    inputs: Any,
    real: npt.NDArray[np.bool_],
    outputs: Any,
    mask: Any,
    training: bool = False,
) -> list[Any]:
    """Outputs, alignments and the last states of each row, by single steps of a cell.

    Args:
        cell: a built cell.
        inputs: float [batch, target_length, n].
        real: bool [batch, target_length]. True on the real steps of the targets, at least one each.
        outputs, mask: encoder outputs and mask of the sources; see `Attention.prepare`.
        training: bool.
    """
    memory = cell.attention.prepare(outputs, mask)
    state, every, states = cell.initial_state(memory, 1), [], []
    for step in range(inputs.shape[1]):
        output, scores, state = cell(inputs[:, step, None], memory, state, training=training)
        every.append((output[:, 0], cell.attention.alignment(scores, memory)[:, 0]))
        states.append([as_array(array)[:, 0] for array in keras.tree.flatten(state.cells)])
    found = [
        as_array(ops.stack(values, axis=1)) * real[:, :, None]
        for values in zip(*every, strict=True)
    ]
    last = [
        np.stack([states[step][index][row] for row, step in enumerate(real.sum(axis=1) - 1)])
        for index in range(len(states[0]))
    ]
    return [*found, last]

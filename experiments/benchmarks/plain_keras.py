"""Attention in plain Keras, as users write it without this package.

`keras.layers.RNN` cannot pass encoder outputs to its cell, so the cell carries them, flattened,
from step to step as a state. Decoding calls a compiled step from Python.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from seq2seq_memattn import AttentionCell


class CarryingCell(keras.layers.Layer):
    """An LSTM cell with additive attention; encoder outputs and keys are states.

    Args:
        units: int > 0. Units of the cell, the attention and the mixing layer.
        source_length: int > 0. Length of all sources.
        encoder_units: int > 0. Width of the encoder outputs.
    """

    def __init__(self, units: int, source_length: int, encoder_units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.lstm = keras.layers.LSTMCell(units)
        self.key = keras.layers.Dense(units)
        self.query = keras.layers.Dense(units)
        self.energy = keras.layers.Dense(1, use_bias=False)
        self.mixing = keras.layers.Dense(units, "tanh")
        self.source = (source_length, encoder_units)
        self.keys = (source_length, units)
        carried = [source_length * encoder_units, source_length * units]
        self.state_size = [units, units, encoder_units, *carried]
        self.output_size = units

    def build(self, input_shape: Any) -> None:
        # `self.key` is not built here, because `first_states` has already built it.
        units, encoder_units = self.output_size, self.source[1]
        self.lstm.build((None, input_shape[-1] + encoder_units))
        for layer, width in (
            (self.query, units),
            (self.energy, units),
            (self.mixing, units + encoder_units),
        ):
            layer.build((None, None, width))
        self.built = True

    def first_states(self, outputs: Any) -> list[Any]:
        """The states before the first step, from outputs [batch, source_length, encoder_units]."""
        batch = ops.shape(outputs)[0]
        zeros = [ops.zeros((batch, units)) for units in self.state_size[:3]]
        carried = (outputs, self.key(outputs))
        return [*zeros, *(ops.reshape(array, (batch, -1)) for array in carried)]

    def call(self, inputs: Any, states: Any) -> Any:
        output, carry, context, flat_outputs, flat_keys = states
        output, (output, carry) = self.lstm(
            ops.concatenate([inputs, context], axis=-1), [output, carry]
        )
        keys = ops.reshape(flat_keys, (-1, *self.keys))
        energies = self.energy(ops.tanh(keys + self.query(output)[:, None]))
        weights = ops.softmax(energies, axis=1)
        context = ops.sum(weights * ops.reshape(flat_outputs, (-1, *self.source)), axis=1)
        mixed = self.mixing(ops.concatenate([output, context], axis=-1))
        return mixed, [output, carry, context, flat_outputs, flat_keys]


class PlainKeras(keras.Model):
    """A model around `CarryingCell`.

    Args:
        encode: layer that turns source ids into encoder outputs.
        embedding, logits: layers.
        units, source_length, encoder_units: see `CarryingCell`.
    """

    def __init__(
        self,
        encode: Any,
        embedding: Any,
        logits: Any,
        units: int,
        source_length: int,
        encoder_units: int,
    ) -> None:
        super().__init__()
        self.encode, self.embedding, self.logits = encode, embedding, logits
        self.cell = CarryingCell(units, source_length, encoder_units)
        self.rnn = keras.layers.RNN(self.cell, return_sequences=True)

    def call(self, inputs: Any) -> Any:
        source, target = inputs
        states = self.cell.first_states(self.encode(source))
        return self.logits(self.rnn(self.embedding(target), initial_state=states))

    def greedy(self, source: Any, num_steps: int, start_id: int) -> Any:
        """Greedy search for `num_steps` steps: int32 [batch, num_steps]."""
        if not hasattr(self, "_compiled_step"):
            import tensorflow as tf

            def step(tokens: Any, states: Any) -> Any:
                output, states = self.cell(self.embedding(tokens), states)
                return ops.cast(ops.argmax(self.logits(output), axis=-1), "int32"), states

            self._compiled_step = tf.function(step)
            self._compiled_start = tf.function(lambda x: self.cell.first_states(self.encode(x)))
        states = self._compiled_start(source)
        tokens = ops.full((len(source),), start_id, dtype="int32")
        written = []
        for _ in range(num_steps):
            tokens, states = self._compiled_step(tokens, states)
            written.append(tokens)
        return np.stack(written, axis=1)


class LoopOverCells(keras.Model):
    """A model with the Python loop over `AttentionCell` that `AttentionDecoder` replaces.

    Args:
        encode, embedding, logits: layers, see `PlainKeras`.
        attention: an attention of the package.
        units: int > 0. Units of the cell and the mixing layer.
    """

    def __init__(
        self, encode: Any, embedding: Any, logits: Any, attention: Any, units: int
    ) -> None:
        super().__init__()
        self.encode, self.embedding, self.logits = encode, embedding, logits
        cell = keras.layers.LSTMCell(units)
        self.cell = AttentionCell(cell, attention, mixing_units=units)

    def call(self, inputs: Any) -> Any:
        source, target = inputs
        memory = self.cell.attention.prepare(self.encode(source))
        state = self.cell.initial_state(memory, num_queries=1)
        embedded, outputs = self.embedding(target), []
        for step in range(target.shape[1]):
            output, _, state = self.cell(embedded[:, step : step + 1], memory, state)
            outputs.append(output)
        return self.logits(ops.concatenate(outputs, axis=1))

"""Sorts digits with a recurrent cell of your own and Luong's attention.

Shows that any layer with `state_size`, `output_size` and `call` is a cell for Keras's `RNN` and for
`AttentionDecoder`. The model is trained, saved and loaded; beam search uses the loaded layers.

    python examples/own_cell.py

On two cores of a Xeon with nothing else running, this took 2.0 minutes. Among the last lines:

    [9 6 5 9 8 4 9 9 0 6 7 9] -> [0 4 5 6 6 7 8 9 9 9 9 9]
    100.0% of 1,000 test sequences exact after 2.0 minutes.
"""

import argparse
import time
from typing import Any

import keras
import numpy as np
from keras import ops

from seq2seq_memattn import (
    AttentionDecoder,
    LuongAttention,
    Searchable,
    TokenCrossEntropy,
    beam_search,
)

parser = argparse.ArgumentParser(description="Learns to sort digits.")
parser.add_argument("--examples", type=int, default=20_000, help="sequences to train on")
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--model", default="sorting.keras", help="file for the model")
options = parser.parse_args()
keras.utils.set_random_seed(options.seed)
start = time.perf_counter()

# The cell. Registering it lets `load_model` find its class.


@keras.saving.register_keras_serializable(package="own_cell")
class MinimalGatedCell(keras.layers.Layer):
    """Minimal gated unit (Zhou, Wu, Zhang and Zhou, 2016): a GRU with one gate instead of two."""

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = self.state_size = self.output_size = units
        self.gate = keras.layers.Dense(units, "sigmoid", dtype=self.dtype_policy)
        self.candidate = keras.layers.Dense(units, "tanh", dtype=self.dtype_policy)

    def build(self, input_shape: Any) -> None:
        self.gate.build((None, input_shape[-1] + self.units))
        self.candidate.build((None, input_shape[-1] + self.units))
        self.built = True

    def call(self, inputs: Any, states: Any) -> Any:
        (state,) = states  # [batch, units]
        gate = self.gate(ops.concatenate([inputs, state], axis=-1))
        candidate = self.candidate(ops.concatenate([inputs, gate * state], axis=-1))
        state = (1.0 - gate) * state + gate * candidate
        return state, [state]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


# The data: 2 to 12 digits. 0 is padding, 1 starts a target, 2 ends a sequence, 3 is the digit 0.

VOCAB_SIZE, LONGEST, NUM_TESTED = 13, 12, 1_000
numbers = np.random.default_rng(options.seed)
lengths = numbers.integers(2, LONGEST, options.examples + NUM_TESTED, endpoint=True)
sources, targets = np.zeros([2, len(lengths), LONGEST + 1], "int32")
for row, length in enumerate(lengths):
    digits = numbers.integers(3, VOCAB_SIZE, length)
    sources[row, : length + 1] = [*digits, 2]
    targets[row, : length + 1] = [*np.sort(digits), 2]
target_inputs = np.pad(targets[:, :-1], [(0, 0), (1, 0)], constant_values=1) * (targets > 0)
train, test = slice(options.examples), slice(options.examples, None)

# The model: the cell reads the digits in both directions and writes them with attention.

source = keras.Input((None,), dtype="int32")
target = keras.Input((None,), dtype="int32")
embed = keras.layers.Embedding(VOCAB_SIZE, 32, mask_zero=True)
encoder = keras.layers.Bidirectional(keras.layers.RNN(MinimalGatedCell(64), return_sequences=True))
decoder = AttentionDecoder(MinimalGatedCell(128), LuongAttention("general"), mixing_units=64)
to_logits = keras.layers.Dense(VOCAB_SIZE)

decoded = decoder(embed(target), encoder(embed(source)))
model = keras.Model([source, target], to_logits(decoded))
rate = keras.optimizers.schedules.CosineDecay(3e-3, options.epochs * options.examples // 64)
model.compile(keras.optimizers.Adam(rate), TokenCrossEntropy())
inputs = [sources[train], target_inputs[train]]
model.fit(inputs, targets[train], batch_size=64, epochs=options.epochs, verbose=2)
model.save(options.model)


def sort(model: keras.Model) -> np.ndarray:
    """The targets that beam search finds: int32 [NUM_TESTED, tokens]."""
    result = beam_search(Searchable.from_model(model), sources[test], max_length=LONGEST + 1)
    return np.array(result.tokens)[:, 0]


trained, loaded = sort(model), sort(keras.saving.load_model(options.model))
exact = (loaded == targets[test]).all(axis=1).mean()
same = (loaded == trained).all(axis=1).mean()

for ids, found in zip(sources[-5:], loaded[-5:], strict=True):
    print(f"{ids[ids > 2] - 3} -> {found[found > 2] - 3}")
minutes = (time.perf_counter() - start) / 60
print(f"Learned from {options.examples:,} sequences; saved, loaded and searched {options.model}.")
print(f"{same:.1%} of the results equal those of the model before saving.")
print(f"{exact:.1%} of {NUM_TESTED:,} test sequences exact after {minutes:.1f} minutes.")

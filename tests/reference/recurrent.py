"""LSTM and GRU cells with weights in Keras's layout, and the recurrent encoders made of them.

A cell's state is a tuple in Keras's order: (h, c) for an LSTM and (h,) for a GRU. h is also the
output. Cells and layers process one sentence. The encoders at the end process a batch.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tests.reference.activations import Array, sigmoid

State = tuple[Array, ...]


class LSTMWeights(NamedTuple):
    """Weights of one LSTM cell; the four gates lie side by side in the order i, f, c, o."""

    kernel: Array  # [inputs, 4 * units]
    recurrent_kernel: Array  # [units, 4 * units]
    bias: Array | None = None  # [4 * units]


class GRUWeights(NamedTuple):
    """Weights of one GRU cell; the three gates lie side by side in the order z, r, h."""

    kernel: Array  # [inputs, 3 * units]
    recurrent_kernel: Array  # [units, 3 * units]
    bias: Array | None = (
        None  # [2, 3 * units] (input's, recurrent's) if reset_after, [3 * units] if not
    )
    reset_after: bool = True


CellWeights = LSTMWeights | GRUWeights


class EncoderResult(NamedTuple):
    """An encoder's results; states are those after the last real token that a direction reads."""

    outputs: Array  # [batch, source_length, units, or 2 * units]; 0 on padding
    forward_states: list[State]  # one per layer, each of arrays [batch, units]
    backward_states: list[State]  # empty where there is no backward direction


def lstm_step(inputs: Array, state: State, weights: LSTMWeights) -> tuple[Array, State]:
    """One LSTM step: Hochreiter and Schmidhuber (1997) with the forget gate, as in Keras.

    i, f, o = sigmoid(W x + U h + b); g = tanh(W x + U h + b); c' = f c + i g; h' = o tanh(c').

    Args:
        inputs: float [inputs].
        state: (h, c), each float [units].
        weights: The cell's weights.

    Returns:
        output: float [units]. h'.
        state: (h', c').
    """
    h, c = state
    energies = inputs @ weights.kernel + h @ weights.recurrent_kernel
    if weights.bias is not None:
        energies = energies + weights.bias
    units = h.shape[0]
    input_gate = sigmoid(energies[:units])
    forget_gate = sigmoid(energies[units : 2 * units])
    candidate = np.tanh(energies[2 * units : 3 * units])
    output_gate = sigmoid(energies[3 * units :])
    new_c = forget_gate * c + input_gate * candidate
    new_h = output_gate * np.tanh(new_c)
    return new_h, (new_h, new_c)


def gru_step(inputs: Array, state: State, weights: GRUWeights) -> tuple[Array, State]:
    """One GRU step: Cho et al. (2014), equations 5 to 8, as in Keras.

    z, r = sigmoid(W x + U h + b); h' = z h + (1 - z) g. With the reset gate before the recurrent
    product, g = tanh(W x + U (r h) + b). After it, g = tanh(W x + b_0 + r (U h + b_1)).

    Args:
        inputs: float [inputs].
        state: (h,), float [units].
        weights: The cell's weights.

    Returns:
        output: float [units]. h'.
        state: (h',).
    """
    (h,) = state
    units = h.shape[0]
    input_bias = recurrent_bias = np.zeros(3 * units)
    if weights.bias is not None and weights.reset_after:
        input_bias, recurrent_bias = weights.bias
    elif weights.bias is not None:
        input_bias = weights.bias
    from_inputs = inputs @ weights.kernel + input_bias
    from_state = h @ weights.recurrent_kernel + recurrent_bias
    update_gate = sigmoid(from_inputs[:units] + from_state[:units])
    reset_gate = sigmoid(from_inputs[units : 2 * units] + from_state[units : 2 * units])
    if weights.reset_after:
        recurrent = reset_gate * from_state[2 * units :]
    else:
        recurrent = (reset_gate * h) @ weights.recurrent_kernel[:, 2 * units :]
    candidate = np.tanh(from_inputs[2 * units :] + recurrent)
    new_h = update_gate * h + (1 - update_gate) * candidate
    return new_h, (new_h,)


def cell_step(inputs: Array, state: State, weights: CellWeights) -> tuple[Array, State]:
    """One step of the cell that `weights` belongs to; see `lstm_step` and `gru_step`."""
    if isinstance(weights, LSTMWeights):
        return lstm_step(inputs, state, weights)
    return gru_step(inputs, state, weights)


def zero_state(weights: CellWeights) -> State:
    """The state of zeros in which the cell starts."""
    units = weights.recurrent_kernel.shape[0]
    if isinstance(weights, LSTMWeights):
        return np.zeros(units), np.zeros(units)
    return (np.zeros(units),)


def stack_step(
    inputs: Array, states: Sequence[State], cells: Sequence[CellWeights]
) -> tuple[Array, list[State]]:
    """One step of stacked cells: each reads the output of the cell below.

    Args:
        inputs: float [inputs]. The first cell's inputs.
        states: One state per cell.
        cells: The weights, lowest cell first.

    Returns:
        output: float [units]. The top cell's.
        states: One state per cell.
    """
    new_states = []
    for state, weights in zip(states, cells, strict=True):
        inputs, new_state = cell_step(inputs, state, weights)
        new_states.append(new_state)
    return inputs, new_states


def run_layer(
    inputs: Array,
    length: int,
    weights: CellWeights,
    backward: bool = False,
    initial_state: State | None = None,
) -> tuple[Array, State]:
    """One recurrent layer over the real tokens of one sentence.

    Args:
        inputs: float [source_length, inputs].
        length: int. Real tokens; later positions are never read.
        weights: The cell's weights.
        backward: bool. Reads from the last real token to the first.
        initial_state: The first state; zeros if None.

    Returns:
        outputs: float [source_length, units]. In the order of the inputs, 0 on padding.
        state: After the last token read: position length - 1, or 0 if `backward`.
    """
    state = zero_state(weights) if initial_state is None else initial_state
    outputs = np.zeros([inputs.shape[0], weights.recurrent_kernel.shape[0]])
    for t in reversed(range(length)) if backward else range(length):
        outputs[t], state = cell_step(inputs[t], state, weights)
    return outputs, state


def unidirectional_stack(
    inputs: Array, lengths: Sequence[int], forward: Sequence[CellWeights]
) -> EncoderResult:
    """A stack of forward layers.

    Args:
        inputs: float [batch, source_length, inputs].
        lengths: int [batch]. Real tokens of each sentence.
        forward: The layers' weights, lowest first.

    Returns:
        EncoderResult with outputs [batch, source_length, units] and no backward states.
    """

    def encode(sentence: Array, length: int) -> tuple[Array, list[State], list[State]]:
        outputs, states = _run_layers(sentence, length, forward, backward=False)
        return outputs, states, []

    return _encode_batch(encode, inputs, lengths)


def bidirectional_stack(
    inputs: Array,
    lengths: Sequence[int],
    forward: Sequence[CellWeights],
    backward: Sequence[CellWeights],
) -> EncoderResult:
    """The default encoder of google/seq2seq: layers stacked in each direction, joined at the top.

    Layer 2 of the forward stack never sees layer 1 of the backward stack.

    Args:
        inputs: float [batch, source_length, inputs].
        lengths: int [batch]. Real tokens of each sentence.
        forward: Weights of the forward layers, lowest first.
        backward: Weights of the backward layers, lowest first.

    Returns:
        EncoderResult with outputs [batch, source_length, 2 * units], forward half first.
    """

    def encode(sentence: Array, length: int) -> tuple[Array, list[State], list[State]]:
        forward_outputs, forward_states = _run_layers(sentence, length, forward, backward=False)
        backward_outputs, backward_states = _run_layers(sentence, length, backward, backward=True)
        outputs = np.concatenate([forward_outputs, backward_outputs], axis=-1)
        return outputs, forward_states, backward_states

    return _encode_batch(encode, inputs, lengths)


def bidirectional_concatenated(
    inputs: Array,
    lengths: Sequence[int],
    forward: Sequence[CellWeights],
    backward: Sequence[CellWeights],
) -> EncoderResult:
    """Stacked bidirectional layers: both directions are joined after every layer.

    Args:
        inputs: float [batch, source_length, inputs].
        lengths: int [batch]. Real tokens of each sentence.
        forward: Weights of the forward layers, lowest first; all but the first read 2 * units.
        backward: Weights of the backward layers, in the same form.

    Returns:
        EncoderResult with outputs [batch, source_length, 2 * units], forward half first.
    """

    def encode(sentence: Array, length: int) -> tuple[Array, list[State], list[State]]:
        forward_states, backward_states = [], []
        for forward_cell, backward_cell in zip(forward, backward, strict=True):
            forward_outputs, forward_state = run_layer(sentence, length, forward_cell)
            backward_outputs, backward_state = run_layer(
                sentence, length, backward_cell, backward=True
            )
            forward_states.append(forward_state)
            backward_states.append(backward_state)
            sentence = np.concatenate([forward_outputs, backward_outputs], axis=-1)
        return sentence, forward_states, backward_states

    return _encode_batch(encode, inputs, lengths)


def _run_layers(
    inputs: Array, length: int, layers: Sequence[CellWeights], backward: bool
) -> tuple[Array, list[State]]:
    states = []
    for weights in layers:
        inputs, state = run_layer(inputs, length, weights, backward)
        states.append(state)
    return inputs, states


def _encode_batch(
    encode: Callable[[Array, int], tuple[Array, list[State], list[State]]],
    inputs: Array,
    lengths: Sequence[int],
) -> EncoderResult:
    """Runs `encode` on each sentence alone and stacks the results along a batch axis."""
    results = [encode(inputs[b], int(lengths[b])) for b in range(inputs.shape[0])]
    return EncoderResult(
        np.stack([outputs for outputs, _, _ in results]),
        _stack_states([forward_states for _, forward_states, _ in results]),
        _stack_states([backward_states for _, _, backward_states in results]),
    )


def _stack_states(states_of_sentences: list[list[State]]) -> list[State]:
    """[sentence][layer][part] arrays of [units] -> [layer][part] arrays of [batch, units]."""
    return [
        tuple(np.stack(parts) for parts in zip(*layer, strict=True))
        for layer in zip(*states_of_sentences, strict=True)
    ]

"""The steps of Keras's LSTM and GRU cells, taken apart.

One part of a cell's input is known before a loop starts (the embeddings of a teacher-forced target,
the outputs of the layer below). The other part is made inside the loop (the context that is fed
back). The known part is projected for all steps in one product. Inside the loop, a cell needs one
product per step, or two if it is a GRU with inputs made inside the loop.
"""

import abc
from typing import Any

import keras
from keras import ops

from seq2seq_memattn.compute.precision import product, weights_for
from seq2seq_memattn.compute.seeds import seed_states
from seq2seq_memattn.loops.products import Products


class CellStep(abc.ABC):
    """One step of a cell, for rows that are hypotheses or sentences.

    Args:
        cell: a built Keras RNN cell.
        name: str. Names the cell's product inside the loop.
        ahead: int >= 0. How many of the cell's leading inputs are known before the loop.
    """

    shows_first_state = True
    """Whether the cell's output is its first state."""

    def __init__(self, cell: Any, name: str, ahead: int) -> None:
        self.cell = cell
        self.name = name
        self.ahead = ahead

    @abc.abstractmethod
    def project(self, inputs: Any, training: bool = False) -> Any:
        """Projects the known inputs, for `take`.

        Args:
            inputs: float [rows, ahead].
            training: see `product`.

        Returns:
            float [rows, n]; only a bias [1, n] if `ahead` is 0.
        """

    def seeds(self) -> list[Any]:
        """The states of the random generators that a step in training draws from."""
        return []

    @abc.abstractmethod
    def weights(self) -> dict[str, Any]:
        """The matrices of the products inside the loop, by name; see `weights_for`."""

    @abc.abstractmethod
    def take(
        self, products: Products, projected: Any, inside: Any, states: Any
    ) -> tuple[Any, list[Any]]:
        """Takes one step.

        Args:
            products: the loop's products.
            projected: float [rows, n] from `project`.
            inside: float [rows, input_units - ahead]. Inputs made inside the loop.
            states: list of float [rows, units].

        Returns:
            output: float [rows, units].
            states: the new ones.
        """


class LSTMStep(CellStep):
    """`keras.layers.LSTMCell`: gates in the order input, forget, candidate, output."""

    def project(self, inputs: Any, training: bool = False) -> Any:
        return _project(self, inputs, _cast(self.cell, self.cell.bias)[None, :], training)

    def weights(self) -> dict[str, Any]:
        cell = self.cell
        kernel = ops.concatenate([cell.kernel[self.ahead :], cell.recurrent_kernel], axis=0)
        return {self.name: weights_for(cell, kernel)}

    def take(
        self, products: Products, projected: Any, inside: Any, states: Any
    ) -> tuple[Any, list[Any]]:
        output, carry = states
        gates = projected + products(self.name, _beside(inside, output))
        # The gradient of `split` is one concatenation; that of a slice is padded with zeros.
        opened, forgot, candidate, shown = ops.split(gates, 4, axis=-1)
        carry = ops.sigmoid(forgot) * carry + ops.sigmoid(opened) * ops.tanh(candidate)
        output = ops.sigmoid(shown) * ops.tanh(carry)
        return output, [output, carry]


class GRUStep(CellStep):
    """`keras.layers.GRUCell` with `reset_after`: gates in the order update, reset, candidate."""

    def project(self, inputs: Any, training: bool = False) -> Any:
        return _project(self, inputs, _cast(self.cell, self.cell.bias)[:1], training)

    def weights(self) -> dict[str, Any]:
        cell = self.cell
        weights = {self.name: weights_for(cell, cell.recurrent_kernel)}
        if cell.kernel.shape[0] > self.ahead:
            weights[f"{self.name}_inside"] = weights_for(cell, cell.kernel[self.ahead :])
        return weights

    def take(
        self, products: Products, projected: Any, inside: Any, states: Any
    ) -> tuple[Any, list[Any]]:
        (state,) = states
        recurrent = products(self.name, state) + _cast(self.cell, self.cell.bias)[1:]
        if inside.shape[-1]:
            projected = projected + products(f"{self.name}_inside", inside)
        update_in, reset_in, candidate_in = ops.split(projected, 3, axis=-1)
        update_again, reset_again, candidate_again = ops.split(recurrent, 3, axis=-1)
        update = ops.sigmoid(update_in + update_again)
        reset = ops.sigmoid(reset_in + reset_again)
        candidate = ops.tanh(candidate_in + reset * candidate_again)
        output = update * state + (1.0 - update) * candidate
        return output, [output]


class OpaqueStep(CellStep):
    """A step of any other Keras cell, which is called as a whole."""

    shows_first_state = False

    def project(self, inputs: Any, training: bool = False) -> Any:
        del training
        return inputs

    def seeds(self) -> list[Any]:
        return seed_states(self.cell)

    def weights(self) -> dict[str, Any]:
        return {}

    def take(
        self, products: Products, projected: Any, inside: Any, states: Any
    ) -> tuple[Any, list[Any]]:
        del products
        output, states = self.cell(_beside(projected, inside), list(states))
        return output, list(states) if isinstance(states, (list, tuple)) else [states]


def cell_step(cell: Any, name: str, ahead: int) -> CellStep:
    """The `CellStep` of a cell: taken apart for standard LSTM and GRU cells, opaque for others."""
    if is_standard_lstm(cell):
        return LSTMStep(cell, name, ahead)
    if is_standard_gru(cell):
        return GRUStep(cell, name, ahead)
    return OpaqueStep(cell, name, ahead)


def output_units(cell: Any) -> int:
    """The width of a Keras cell's output."""
    size = getattr(cell, "output_size", None)
    return state_units(cell)[0] if size is None else size


def state_units(cell: Any) -> list[int]:
    """The widths of a Keras cell's states."""
    size = cell.state_size
    return list(size) if isinstance(size, (list, tuple)) else [size]


def is_standard_lstm(cell: Any) -> bool:
    """Whether `cell` computes the usual LSTM equations, without dropout of its own."""
    return type(cell) is keras.layers.LSTMCell and cell.use_bias and _plain(cell)


def is_standard_gru(cell: Any) -> bool:
    """Whether `cell` computes the usual GRU equations with `reset_after`, without dropout."""
    return (
        type(cell) is keras.layers.GRUCell and cell.use_bias and cell.reset_after and _plain(cell)
    )


def _project(step: CellStep, inputs: Any, bias: Any, training: bool) -> Any:
    """The known inputs' part of the gates: [rows, ahead] -> [rows, n]; `bias` is [1, n]."""
    if not step.ahead:
        return bias
    kernel = weights_for(step.cell, step.cell.kernel[: step.ahead])
    return product(inputs, kernel, training) + bias


def _plain(cell: Any) -> bool:
    return (
        cell.activation is keras.activations.tanh
        and cell.recurrent_activation is keras.activations.sigmoid
        and not cell.dropout
        and not cell.recurrent_dropout
    )


def _cast(cell: Any, weight: Any) -> Any:
    return ops.cast(weight, cell.compute_dtype)


def _beside(left: Any, right: Any) -> Any:
    """[left, right] joined on the last axis, without a copy where one is 0 wide."""
    if not left.shape[-1]:
        return right
    return ops.concatenate([left, right], axis=-1) if right.shape[-1] else left

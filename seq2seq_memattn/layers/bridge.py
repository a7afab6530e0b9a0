"""Bridges: make the decoder's first states from the encoder's final states."""

from typing import Any, Literal

import keras
from keras import ops

from seq2seq_memattn.checks import check_choice, check_int
from seq2seq_memattn.compute.private import unwrapped


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class Bridge(keras.layers.Layer):
    """Bridge: makes the decoder's first states from the encoder's final states.

    Source: google/seq2seq, `models/bridges.py`: "zero" starts from zeros (as google/seq2seq's
    attention model does), "dense" maps states of the encoder through one fully connected layer (as
    its basic model does), and "copy" passes the encoder's states on unchanged.

    Args:
        kind: "zero", "copy" or "dense". Only a dense bridge takes the options after `state_units`.
        state_units: list of lists: for each decoder layer, the widths of its states.
        states: which encoder states a dense bridge reads: those of "all" layers and directions, of
            the "top" layer, or of the "backward" direction of the top layer.
        activation: "linear" or "tanh".
        outputs_only: bool. Whether a dense bridge reads and sets only the first state of each cell,
            which is its output. The other states of the decoder then start at zero.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Call arguments:
        states: a nested list: for each encoder layer, then for each direction, the cell's states,
            float [batch, units].

    Returns:
        For each decoder layer, a list of float [batch, units].

    Raises:
        ValueError: if a non-dense bridge gets an option of a dense one; with "copy", if the numbers
            of layers or the widths differ (the message names both; the directions of an encoder
            layer are concatenated); with "backward", if the encoder has one direction.

    Example:
    >>> import keras
    >>> from seq2seq_memattn import Bridge
    >>> lstm = keras.layers.LSTM(4, return_sequences=True, return_state=True)
    >>> outputs, *states = keras.layers.Bidirectional(lstm)(keras.Input((None, 7)))
    >>> bridge = Bridge("dense", state_units=[[3, 3], [5]])  # an LSTM cell, then a GRU cell
    >>> first_states = bridge([[states[:2], states[2:]]])  # one layer, two directions
    >>> [[state.shape for state in states] for states in first_states]
    [[(None, 3), (None, 3)], [(None, 5)]]
    """

    def __init__(
        self,
        kind: Literal["zero", "copy", "dense"],
        state_units: list[list[int]],
        states: Literal["all", "top", "backward"] = "all",
        activation: Literal["linear", "tanh"] = "linear",
        outputs_only: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("kind", kind, ("zero", "copy", "dense"))
        check_choice("states", states, ("all", "top", "backward"))
        check_choice("activation", activation, ("linear", "tanh"))
        if kind != "dense" and (states, activation, outputs_only) != ("all", "linear", False):
            raise ValueError(
                "`kind`: expected 'dense' with `states`, `activation` or `outputs_only`; got "
                f"{kind!r}."
            )
        if not (_is_list(state_units) and all(map(_is_list, state_units))):
            raise ValueError(
                "`state_units`: expected a list of units for each cell, such as [[8]] for a GRU "
                f"cell; got {state_units!r}."
            )
        self.kind = kind
        self.state_units = [
            [check_int("state_units", width) for width in units] for units in state_units
        ]
        self.states = states
        self.activation = activation
        self.outputs_only = outputs_only
        total = sum(sum(units[:1] if outputs_only else units) for units in self.state_units)
        self.dense = (
            keras.layers.Dense(
                total,
                activation,
                dtype=self.dtype_policy,
                trainable=self.trainable,
                name=f"{self.name}_dense",
            )
            if kind == "dense"
            else None
        )

    def __call__(self, states: Any, **kwargs: Any) -> list[list[Any]]:
        # Checked here, not in `call`: Keras adds a list of all arguments to an error of `call`.
        layers = states if _is_list(states) else [states]
        directions = [each for layer in layers for each in (layer if _is_list(layer) else [layer])]
        if not (_is_list(states) and all(map(_is_list, [*layers, *directions]))):
            raise ValueError(
                "`states`: expected a list of encoder layers, each a list of directions, each a "
                "list of the cell's states."
            )
        return super().__call__(states, **kwargs)

    def build(self, states_shape: Any) -> None:
        if self.dense is not None:
            self.dense.build((None, sum(shape[-1] for shape in self._chosen(states_shape))))
        self.built = True

    def call(self, states: Any) -> list[list[Any]]:
        if self.kind == "zero":
            return self._zeros(states)
        if self.kind == "copy":
            return self._copies(states)
        return self._mapped(states)

    def _mapped(self, states: Any) -> list[list[Any]]:
        dense: Any = self.dense
        first, split = dense(ops.concatenate(self._chosen(states), axis=-1)), self._zeros(states)
        for parts, units in zip(split, self.state_units, strict=True):
            for index, width in enumerate(units[:1] if self.outputs_only else units):
                parts[index] = first[:, :width]
                first = first[:, width:]
        return split

    def _zeros(self, states: Any) -> list[list[Any]]:
        batch = ops.shape(states[0][0][0])[0]
        return [
            [ops.zeros((batch, width), dtype=self.compute_dtype) for width in units]
            for units in self.state_units
        ]

    def _copies(self, states: Any) -> list[list[Any]]:
        copies = [
            [ops.concatenate(kinds, axis=-1) for kinds in zip(*layer, strict=True)]
            for layer in states
        ]
        widths = [[state.shape[-1] for state in layer] for layer in copies]
        if widths != self.state_units:
            raise unwrapped(
                ValueError(
                    f"A copy bridge needs states of the same widths; the encoder's have {widths} "
                    f"units, the decoder's {self.state_units}. Use a dense bridge."
                )
            )
        return copies

    def _chosen(self, states: Any) -> list[Any]:
        layers = states if self.states == "all" else states[-1:]
        if self.states == "backward":
            if len(layers[0]) != 2:
                raise ValueError(
                    "A bridge from the backward direction needs a bidirectional encoder; the "
                    "encoder's top layer has one direction."
                )
            layers = [layers[0][-1:]]
        kinds = slice(1 if self.outputs_only else None)
        return [state for layer in layers for direction in layer for state in direction[kinds]]

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "kind": self.kind,
            "state_units": self.state_units,
            "states": self.states,
            "activation": self.activation,
            "outputs_only": self.outputs_only,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Bridge":
        return cls(**config)  # Keras's own method would keep only the name of the dtype policy


def _is_list(x: Any) -> bool:
    """Whether `x` is a list or tuple with elements."""
    return isinstance(x, (list, tuple)) and len(x) > 0

"""Recurrent encoders: map source embeddings to one vector per token and to final states."""

import random
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.checks import check_choice, check_int, check_mask, check_rank, check_share
from seq2seq_memattn.compute.backend import has_static_shapes
from seq2seq_memattn.compute.padding import not_empty, padding_last
from seq2seq_memattn.compute.precision import rounds_products
from seq2seq_memattn.compute.rows import reverse_prefix
from seq2seq_memattn.compute.seeds import SeedGenerator
from seq2seq_memattn.loops.cell_steps import cell_step, state_units
from seq2seq_memattn.loops.scan import make_steps, scan_cell
from seq2seq_memattn.loops.step_inputs import StepInputs

LAYERS = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}


class Encoded(NamedTuple):
    """The results of an encoder.

    Fields:
        outputs: float [batch, source_length, encoder_units]. 0 on padding.
        states: for each layer, for each direction, the cell's states [batch, units] after the last
            real token that it reads (backward: the first token). A cell's first state is its
            output.
    """

    outputs: Any
    states: Any


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class Encoder(keras.layers.Layer):
    """Recurrent encoder: a stack of layers over the source, in one or both directions.

    Source: google/seq2seq, `encoders/rnn_encoder.py`. "per_direction" stacks the layers of each
    direction separately and concatenates the outputs of both top layers; "concatenated"
    concatenates both directions after every layer, so that each layer reads both directions. Every
    direction has the full number of units.

    Args:
        units: int > 0. Units of each layer in each direction.
        num_layers: int > 0.
        cell: "lstm" or "gru".
        bidirectional: bool.
        stacking: "per_direction" or "concatenated".
        dropout: float in [0, 1). Dropout rate of each layer's inputs. Each token has its own mask.
        kernel_initializer: initialiser of all kernels of the cells. Its own seed is ignored.
        seed: int or None. Seed of dropout and of the weights. None: a random seed, reproducible
            with `keras.utils.set_random_seed`.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Call arguments:
        inputs: float [batch, source_length, embedding_dim]. (`Seq2Seq` passes the ids of a small
            vocabulary together with its embeddings.)
        mask: bool [batch, source_length], true on real tokens. None: the mask that Keras attached
            to `inputs`, if any.
        outputs_only: bool. Whether only the first state of each cell is needed. The other states
            may then be missing from the result, which makes training faster.

    Returns:
        `Encoded`.

    Masking: padding never changes a result. It must come last, which compiled code (XLA, JAX) does
        not check.

    Example:
    >>> from keras import ops
    >>> from seq2seq_memattn import Encoder
    >>> encoder = Encoder(units=3, num_layers=2)
    >>> encoded = encoder(ops.zeros([2, 5, 4]), mask=ops.ones([2, 5], dtype="bool"))
    >>> tuple(encoded.outputs.shape)
    (2, 5, 6)
    """

    def __init__(
        self,
        units: int,
        num_layers: int = 1,
        cell: Literal["lstm", "gru"] = "lstm",
        bidirectional: bool = True,
        stacking: Literal["per_direction", "concatenated"] = "per_direction",
        dropout: float = 0.0,
        kernel_initializer: Any = "glorot_uniform",
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        units, num_layers = check_int("units", units), check_int("num_layers", num_layers)
        check_share("dropout", dropout)
        check_choice("cell", cell, tuple(LAYERS))
        check_choice("stacking", stacking, ("per_direction", "concatenated"))
        self.supports_masking = True
        self.units = units
        self.num_layers = num_layers
        self.cell_name = cell
        self.bidirectional = bidirectional
        self.stacking = stacking
        self.dropout = dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.seed = seed
        self.directions = ("forward", "backward") if bidirectional else ("forward",)
        # Drawn in the same way as Keras draws the seeds of its own layers.
        self._first_seed = random.randint(1, 10**9) if seed is None else seed
        self.seed_generator = SeedGenerator(self._first_seed)
        self.layers = [  # flat: TensorFlow does not track the weights of nested lists
            self._layer(index, direction)
            for index in range(num_layers)
            for direction in self.directions
        ]

    def _by_depth(self) -> list[list[Any]]:
        """For each depth, lowest first, its layers: one for each direction."""
        width = len(self.directions)
        return [self.layers[first : first + width] for first in range(0, len(self.layers), width)]

    def _layer(self, index: int, direction: str) -> Any:
        first = 2 * (len(self.directions) * index + self.directions.index(direction))
        return LAYERS[self.cell_name](
            self.units,
            kernel_initializer=self._initializer(first),
            recurrent_initializer=self._initializer(first + 1),
            return_sequences=True,
            return_state=True,
            # Never used, but saved: a seed drawn by Keras would make saved runs differ.
            seed=self._first_seed,
            dtype=self.dtype_policy,
            trainable=self.trainable,
            name=f"{self.name}_{direction}_{index}",
        )

    def _initializer(self, number: int) -> Any:
        """A kernel's initialiser, with its own seed: a shared seed would make all kernels equal."""
        given = self.kernel_initializer
        is_function = not isinstance(given, keras.initializers.Initializer)
        options = {} if is_function else given.get_config()
        if "seed" not in options:
            return given
        options["seed"] = (1_000_003 * self._first_seed + number) % 2**31
        return given.from_config(options)

    def build(self, input_shape: Any) -> None:
        # If the inputs have a table, the lowest layers read its rows.
        width = (input_shape.table if isinstance(input_shape, StepInputs) else input_shape)[-1]
        for index, directions in enumerate(self._by_depth()):
            if index:
                joined = self.stacking == "concatenated"
                width = self.units * (len(self.directions) if joined else 1)
            for layer in directions:
                layer.build((None, None, width))
        self.built = True

    def spec_of_one_token(self) -> Encoded:
        """Shapes and dtypes of the results for a source of one token; computes nothing."""

        def spec(*shape: int) -> keras.KerasTensor:
            return keras.KerasTensor(shape, self.compute_dtype)

        states = [
            [[spec(1, units) for units in state_units(layer.cell)] for layer in layers]
            for layers in self._by_depth()
        ]
        return Encoded(spec(1, 1, self.units * len(self.directions)), states)

    def __call__(self, inputs: Any, mask: Any = None, **kwargs: Any) -> Encoded:
        # Checked here, not in `call`: Keras adds a list of all arguments to an error of `call`.
        if not isinstance(inputs, StepInputs):
            check_rank("inputs", inputs, ("batch", "source_length", "embedding_dim"))
            check_mask("mask", mask, inputs)
        values = inputs.values if isinstance(inputs, StepInputs) else inputs
        if values.shape[1] == 0:
            raise ValueError("`inputs`: expected at least one position; got source_length 0.")
        # Keras hands on a mask only if it is given by name.
        given = {} if mask is None else {"mask": mask}
        return super().__call__(inputs, **given, **kwargs)

    def call(
        self, inputs: Any, mask: Any = None, training: bool = False, outputs_only: bool = False
    ) -> Encoded:
        inputs = inputs if isinstance(inputs, StepInputs) else StepInputs(inputs)
        if mask is None:
            first = inputs.values[:, :, 0] if inputs.table is None else inputs.values
            mask = ops.ones_like(first, dtype="bool")
        mask = padding_last("mask", not_empty("inputs", ops.cast(mask, "bool")))
        if _runs_own_loops(self):
            return self._run_loops(inputs, mask, training, outputs_only)
        return self._run_layers(inputs, mask, training)

    def _drop(self, x: Any, training: bool) -> Any:
        if not training or not self.dropout:
            return x
        return keras.random.dropout(x, self.dropout, seed=self.seed_generator)

    def _run_loops(
        self, inputs: StepInputs, mask: Any, training: bool, outputs_only: bool
    ) -> Encoded:
        """Runs our loops (`loops/`), which project inputs beforehand and defer weight gradients."""
        lengths = ops.sum(ops.cast(mask, "int32"), axis=1)
        steps = make_steps(lengths, ops.shape(mask)[1])
        zeros = ops.zeros((steps.batch, self.units), dtype=self.compute_dtype)

        def run(layer: Any, given: StepInputs) -> tuple[Any, list[Any]]:
            step = cell_step(layer.cell, layer.name, ahead=given.width)
            if training and self.dropout:
                given = StepInputs(self._drop(given.embedded(), training))
            first = [zeros] * len(state_units(layer.cell))
            projected = given.project(step, training)
            outputs, states = scan_cell(
                step, projected, first, steps, training, return_states=not outputs_only
            )
            return outputs, [steps.last(every) for every in states or [outputs]]

        return self._stack(inputs, steps.pack, steps.unpack, run)

    def _run_layers(self, inputs: StepInputs, mask: Any, training: bool) -> Encoded:
        """Runs Keras's own layers on padded batches."""
        positions = ops.cumsum(ops.ones_like(mask, dtype="int32"), axis=1) - 1
        lengths = ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True)
        # cuDNN refuses sources without real tokens.
        some = ops.logical_or(mask, positions == 0)

        def turn(x: Any, reverse: bool) -> Any:
            return reverse_prefix(x, positions, lengths) if reverse else x

        def turn_back(x: Any, reverse: bool) -> Any:
            return turn(x, reverse) * ops.cast(mask, x.dtype)[:, :, None]

        def run(layer: Any, given: StepInputs) -> tuple[Any, list[Any]]:
            outputs, *states = layer(self._drop(given.values, training), mask=some)
            return outputs, [ops.where(lengths > 0, state, 0.0) for state in states]

        return self._stack(StepInputs(inputs.embedded()), turn, turn_back, run)

    def _stack(
        self,
        inputs: StepInputs,
        pack: Callable[[Any, bool], Any],
        unpack: Callable[[Any, bool], Any],
        run: Callable[[Any, StepInputs], tuple[Any, list[Any]]],
    ) -> Encoded:
        """Runs all layers, lowest first.

        Args:
            inputs: [batch, source_length, ...].
            pack: puts inputs into the order in which `run` takes them. Its second argument is true
                for the backward direction.
            unpack: undoes `pack` for outputs, with 0 on padding.
            run: runs a layer; returns the outputs, in the order of the inputs, and the last states.
        """
        backward = [direction == "backward" for direction in self.directions]

        def spread(inputs: StepInputs) -> list[StepInputs]:
            return [inputs._replace(values=pack(inputs.values, turned)) for turned in backward]

        def join(given: list[StepInputs]) -> Any:
            outputs = [
                unpack(each.values, turned) for each, turned in zip(given, backward, strict=True)
            ]
            return ops.concatenate(outputs, axis=-1)

        given, states = spread(inputs), []
        for index, layers in enumerate(self._by_depth()):
            if index and self.stacking == "concatenated":
                given = spread(StepInputs(join(given)))
            found = [run(layer, each) for layer, each in zip(layers, given, strict=True)]
            given = [StepInputs(outputs) for outputs, _ in found]
            states.append([last for _, last in found])
        return Encoded(join(given), states)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "units": self.units,
            "num_layers": self.num_layers,
            "cell": self.cell_name,
            "bidirectional": self.bidirectional,
            "stacking": self.stacking,
            "dropout": self.dropout,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Encoder":
        return cls(**config)  # Keras's own method would keep only the name of the dtype policy


def _runs_own_loops(layer: Any) -> bool:
    """Whether a layer should run our own loops (`loops/`) instead of Keras's layers.

    True with TensorFlow on CPUs or under XLA. On GPUs, cuDNN's kernels, which Keras's layers use,
    are faster, but XLA cannot compile them. Only our loops know policies that round products.
    """
    if rounds_products(layer):
        return True
    if keras.backend.backend() == "jax":
        return False
    if has_static_shapes():
        return True
    import tensorflow as tf

    return not tf.config.list_logical_devices("GPU")  # none if the GPUs are hidden

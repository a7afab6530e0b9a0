"""The layer that runs an attention cell over a whole target."""

from typing import Any, Literal

import keras
from keras import ops

from seq2seq_memattn.checks import check_mask, check_policy, check_rank, check_size
from seq2seq_memattn.compute.padding import padding_last
from seq2seq_memattn.compute.private import serialise_shared
from seq2seq_memattn.compute.seeds import SeedGenerator
from seq2seq_memattn.layers.attention_cell import AttentionCell
from seq2seq_memattn.layers.teacher_forcing import (
    OUTPUTS_ONLY,
    Asked,
    Decoded,
    TeacherForcedDecoder,
)
from seq2seq_memattn.loops.cell_steps import state_units


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class AttentionDecoder(keras.layers.Layer):
    """Recurrent decoder with attention, run over a known target (teacher forcing).

    Source: Britz, Guan and Luong (2017), figure 1; Bahdanau et al. (2014) with `read="before"`.
    It does for `AttentionCell` what `keras.layers.RNN` does for other cells, and reads the encoder
    outputs besides. Attention and cells are as in `AttentionCell`. Where a step needs nothing of
    the step before but the cells' states (`input_feeding=False`), the attention reads all steps at
    once.

    Args:
        cell: a Keras RNN cell, a `StackedRNNCells`, a list of cells, lowest first, or an
            `AttentionCell`. An `AttentionCell` brings its own attention and its own `read`,
            `input_feeding` and mixing layer.
        attention: an `Attention`.
        read, input_feeding, mixing_units, mixing_activation, mixing_from: see `AttentionCell`.
        dropout: float in [0, 1). Share of each cell's inputs dropped in training, drawn for each
            step.
        seed: int, a `keras.random.SeedGenerator`, or None. Seed of the dropout; None: a random one.
        return_alignments: bool. Whether to return the alignments, too.
        return_state: bool. Whether to return the cells' last states, too.

    Call arguments:
        inputs: float [batch, target_length, n]. The embedded target: the start token, then the
            target without its end token.
        encoder_outputs: float [batch, source_length, encoder_units].
        initial_state: list of float [batch, units], as the cells' `state_size` has them, lowest
            cell first. Those of a `Bidirectional` layer, twice as many and half as wide, are joined
            in pairs. None: what the cells' `get_initial_state` gives.
        inputs_mask: bool [batch, target_length]. True on real steps; padding must come last (see
            `padding_last`). None: the mask that Keras attached to `inputs`, if any.
        encoder_outputs_mask: bool [batch, source_length]. True on real tokens. None: the mask that
            Keras attached to `encoder_outputs`, if any.
        training: bool.

    Returns:
        outputs: float [batch, target_length, units], 0 on padding. `units` is `mixing_units`, or
            without a mixing layer the width of what it would read.
        alignments: float [batch, target_length, source_length], 0 on padding. What each step read
            of the source, whatever the attention. With `return_alignments`.
        state: list of float [batch, units]. The cells' states after the last real step of each
            target, lowest cell first. With `return_state`.

    Masking: padding never changes a result. The mask of `inputs` is handed on to the outputs.
        Operations such as `x * 2.0` drop the masks that Keras attaches; layers hand them on.

    Raises:
        ValueError: if arguments or their shapes do not fit together.

    Example:
    >>> from seq2seq_memattn.attention.k_memory import KMemoryAttention
    >>> decoder = AttentionDecoder(keras.layers.GRUCell(6), KMemoryAttention(4), mixing_units=5)
    >>> tuple(decoder(ops.zeros([2, 3, 7]), ops.zeros([2, 9, 8])).shape)
    (2, 3, 5)
    """

    def __init__(
        self,
        cell: Any,
        attention: Any = None,
        read: Literal["after", "before"] = "after",
        input_feeding: bool = True,
        mixing_units: int | None = None,
        mixing_activation: Literal["tanh", "linear"] = "tanh",
        mixing_from: Literal["output_and_context", "output"] = "output_and_context",
        dropout: float = 0.0,
        seed: Any = None,
        return_alignments: bool = False,
        return_state: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"`dropout` must be in [0, 1); got {dropout}.")
        self.supports_masking = True
        options = (read, input_feeding, mixing_units, mixing_activation, mixing_from)
        if isinstance(cell, AttentionCell):
            if (attention, *options) != (None, "after", True, None, "tanh", "output_and_context"):
                raise ValueError(
                    "`cell`: an AttentionCell has an attention, a way of reading and a mixing "
                    "layer of its own; give them to it, not to the AttentionDecoder."
                )
            self.cell = cell
        else:
            name, dtype = f"{self.name}_cell", self.dtype_policy
            self.cell = AttentionCell(cell, attention, *options, name=name, dtype=dtype)
        check_policy("cell", self.cell, self)
        self.dropout = dropout
        self.seed = seed
        self.return_alignments = return_alignments
        self.return_state = return_state
        is_generator = isinstance(seed, keras.random.SeedGenerator)
        self.seed_generator = seed if is_generator else SeedGenerator(seed)
        self._loops = TeacherForcedDecoder(self.cell, dropout, self.seed_generator)
        self._widths: tuple[int | None, int | None] = (None, None)  # of inputs, encoder outputs

    def build(self, inputs_shape: Any, encoder_outputs_shape: Any) -> None:
        self._widths = (inputs_shape[-1], encoder_outputs_shape[-1])
        # Traced with one step: the loop's own layers are those of a step.
        inputs, outputs = [
            keras.KerasTensor((1, 1, width), self.compute_dtype) for width in self._widths
        ]
        _OneStep(self.cell).compute_output_spec(inputs, outputs)
        self.built = True

    def __call__(
        self, inputs: Any, encoder_outputs: Any, initial_state: Any = None, **kwargs: Any
    ) -> Any:
        # Checked here and not in `call`, whose errors Keras puts into a list of all arguments.
        _check_sequence("inputs", inputs, "target_length", self._widths[0])
        _check_sequence("encoder_outputs", encoder_outputs, "source_length", self._widths[1])
        check_size("encoder_outputs", "batch", encoder_outputs.shape[0], inputs.shape[0])
        for name, sequence in (("inputs", inputs), ("encoder_outputs", encoder_outputs)):
            check_mask(f"{name}_mask", kwargs.get(f"{name}_mask"), sequence)
        if initial_state is not None:
            self.cell_states(initial_state)
        return super().__call__(inputs, encoder_outputs, initial_state, **kwargs)

    def call(
        self,
        inputs: Any,
        encoder_outputs: Any,
        initial_state: Any = None,
        inputs_mask: Any = None,
        encoder_outputs_mask: Any = None,
        training: bool = False,
    ) -> Any:
        real = padding_last("inputs_mask", _mask(inputs, inputs_mask))
        memory = self.cell.attention.prepare(
            encoder_outputs, _mask(encoder_outputs, encoder_outputs_mask)
        )
        decoded = self.run(
            inputs,
            ops.sum(ops.cast(real, "int32"), axis=1),
            memory,
            None if initial_state is None else self.cell_states(initial_state),
            training,
            Asked(self.return_alignments, self.return_state),
        )
        real = ops.cast(real, self.compute_dtype)[:, :, None]
        found = [decoded.outputs * real]
        if self.return_alignments:
            found.append(decoded.alignments * ops.cast(real, decoded.alignments.dtype))
        if self.return_state:
            found.append(keras.tree.flatten(decoded.states))
        return found[0] if len(found) == 1 else tuple(found)

    def run(
        self,
        inputs: Any,
        lengths: Any,
        memory: Any,
        cell_states: Any,
        training: bool,
        asked: Asked = OUTPUTS_ONLY,
    ) -> Decoded:
        """Runs all steps of a built layer, for models that prepare the memory themselves.

        Args:
            inputs, lengths, memory, cell_states, training, asked: see `TeacherForcedDecoder`.
        """
        return self._loops(inputs, lengths, memory, cell_states, training, asked)

    @property
    def encoder_units(self) -> int | None:
        """The width of the encoder outputs that a built layer takes."""
        return self._widths[1]

    def cell_states(self, initial_state: Any) -> list[list[Any]]:
        """For each cell its states, of the argument `initial_state` of a call.

        Raises:
            ValueError: if their number or widths are not those of the cells.
        """
        given = list(initial_state) if isinstance(initial_state, (list, tuple)) else [initial_state]
        wanted = [state_units(cell) for cell in self.cell.cells]
        expected = [units for widths in wanted for units in widths]
        got, half = [state.shape[-1] for state in given], len(expected)
        if len(got) == 2 * half and got != expected:
            pairs = list(zip(given[:half], given[half:], strict=True))
            got = [left.shape[-1] + right.shape[-1] for left, right in pairs]
            given = [ops.concatenate(pair, axis=-1) for pair in pairs] if got == expected else given
        if got != expected:
            raise ValueError(
                f"`initial_state`: expected states {expected} wide, as the cells have them; got "
                f"{[state.shape[-1] for state in given]}. `Bridge` maps states to other widths."
            )
        return keras.tree.pack_sequence_as(wanted, given)

    def compute_output_spec(
        self,
        inputs: Any,
        encoder_outputs: Any,
        initial_state: Any = None,
        inputs_mask: Any = None,
        encoder_outputs_mask: Any = None,
        training: bool = False,
    ) -> Any:
        del initial_state, inputs_mask, encoder_outputs_mask, training
        batch, target_length = inputs.shape[:2]

        def spec(*shape: int | None) -> keras.KerasTensor:
            return keras.KerasTensor((batch, *shape), self.compute_dtype)

        found: list[Any] = [spec(target_length, self.cell.output_units)]
        if self.return_alignments:
            found.append(spec(target_length, encoder_outputs.shape[1]))
        if self.return_state:
            found.append([spec(units) for cell in self.cell.cells for units in state_units(cell)])
        return found[0] if len(found) == 1 else tuple(found)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        del inputs
        if previous_mask is None or not (self.return_alignments or self.return_state):
            return previous_mask
        num_states = sum(len(state_units(cell)) for cell in self.cell.cells)
        others = int(self.return_alignments) + (num_states if self.return_state else 0)
        return [previous_mask, *[None] * others]

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "cell": serialise_shared(self.cell),
            "dropout": self.dropout,
            "seed": self.seed,
            "return_alignments": self.return_alignments,
            "return_state": self.return_state,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "AttentionDecoder":
        return cls(**{**config, "cell": keras.saving.deserialize_keras_object(config["cell"])})


class _OneStep(keras.Operation):
    """A cell on sources and targets of one token; builds its layers when it is traced."""

    def __init__(self, cell: AttentionCell) -> None:
        super().__init__()
        self.cell = cell

    def call(self, inputs: Any, encoder_outputs: Any) -> Any:
        mask = ops.ones_like(encoder_outputs[:, :, 0], dtype="bool")
        memory = self.cell.attention.prepare(encoder_outputs, mask)
        if not self.cell.built:
            # Before the first state: a user's cell may make it of weights of its own.
            self.cell.build(inputs.shape, keras.tree.map_structure(lambda x: x.shape, memory), None)
        return self.cell(inputs, memory, self.cell.initial_state(memory, 1))[0]


def _mask(x: Any, mask: Any) -> Any:
    """The mask as bool, all true if there is none."""
    if mask is None:
        return ops.ones_like(x[:, :, 0], dtype="bool")
    return ops.cast(mask, "bool")


def _check_sequence(name: str, x: Any, length: str, units: int | None) -> None:
    check_rank(name, x, ("batch", length, "units"))
    check_size(name, "units", x.shape[-1], units)

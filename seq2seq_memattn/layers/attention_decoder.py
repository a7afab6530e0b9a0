"""`AttentionDecoder`: runs an attention cell over all steps of a target."""

from typing import Any, Literal

import keras
from keras import ops

from seq2seq_memattn.checks import check_mask, check_policy, check_rank, check_share, check_size
from seq2seq_memattn.compute.padding import full_mask, not_empty, padding_last
from seq2seq_memattn.compute.private import attach_mask, freeze_inside, serialise_shared
from seq2seq_memattn.compute.seeds import SeedGenerator
from seq2seq_memattn.compute.tracing import trace
from seq2seq_memattn.layers.attention_cell import AttentionCell
from seq2seq_memattn.layers.teacher_forcing import Asked, TeacherForcedDecoder
from seq2seq_memattn.loops.cell_steps import state_units


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class AttentionDecoder(keras.layers.Layer):
    """Recurrent decoder with attention, run over a known target (teacher forcing).

    Source: Britz, Guan and Luong (2017), figure 1; Bahdanau et al. (2014) with `read="before"`.
    It does for `AttentionCell` what `keras.layers.RNN` does for other cells, and also reads the
    encoder outputs. Attention and cells work as in `AttentionCell`. If a step needs only the cells'
    states from the step before (`input_feeding=False`, `read="after"` and an attention without a
    state), the attention reads the memory for all steps at once.

    Args:
        cell: a Keras RNN cell, a `StackedRNNCells`, a list of cells, lowest first, or an
            `AttentionCell`. An `AttentionCell` brings its own attention and its own `read`,
            `input_feeding` and mixing layer. If a `keras.layers.RNN` of the same model also uses
            one of these cells, `load_model` may fail, as it does for two `RNN` layers that share a
            cell.
        attention: an `Attention`. None if `cell` is an `AttentionCell`, which has one.
        read, input_feeding, mixing_units, mixing_activation, mixing_from: see `AttentionCell`.
        dropout: float in [0, 1). Dropout rate of each cell's inputs in training. Each step draws a
            new mask.
        seed: int, a `keras.random.SeedGenerator`, or None. Seed of the dropout; None: a random one.
        return_alignments: bool. Whether to return the alignments as well.
        return_state: bool. Whether to return the cells' last states as well.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer. The cell and the
            attention must have the same dtype policy as the decoder.

    Call arguments:
        inputs: float [batch, target_length, n]. The embedded target: the start token, then the
            target without its end token.
        encoder_outputs: float [batch, source_length, encoder_units].
        initial_state: list of float [batch, units], lowest cell first, with the widths of the
            cells' `state_size`; or a list of states for each cell, as `Bridge` makes them. A
            `Bidirectional` encoder has twice as many states, each half as wide: pass all of them,
            and each forward state is concatenated with its backward state. For several cells, pass
            one such list per cell. None: the states that the cells' `get_initial_state` returns.
        inputs_mask: bool [batch, target_length]. True on real steps. Padding must come last;
            compiled code (XLA, JAX) does not check that. None: the mask that Keras attached to
            `inputs`, if any.
        encoder_outputs_mask: bool [batch, source_length]. True on real tokens. None: the mask that
            Keras attached to `encoder_outputs`, if any.
        training: bool.

    Returns:
        outputs: float [batch, target_length, units], 0 on padding. `units` is `mixing_units`.
            Without a mixing layer, it is the top cell's units plus the width of the context, or
            with `mixing_from="output"` the top cell's units alone.
        alignments: float [batch, target_length, source_length], 0 on padding. How much each step
            read from each source position, for any attention. Only with `return_alignments`.
        state: list of float [batch, units]. The cells' states after the last real step of each
            target, lowest cell first. Only with `return_state`. To continue a target, they are not
            enough: the next step also needs the previous context (unless `input_feeding` is False)
            and the attention's own state. The layer's attribute `cell`, an `AttentionCell`, runs
            single steps with all of these.

    Masking: padding never changes a result. The mask of the outputs, which Keras's losses read, is
        `inputs_mask`, or else the mask attached to `inputs`. Keras layers pass on the masks that
        Keras attaches; operations such as `x * 2.0` drop them.

    Raises:
        ValueError: if arguments or their shapes do not fit together: `cell` is not an RNN cell, a
            cell has its own dropout, the dtype policy of a cell or the attention differs from the
            decoder's, or an array has a wrong rank or width.

    Example:
    >>> import keras
    >>> from seq2seq_memattn import AttentionDecoder, KMemoryAttention
    >>> source, target = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    >>> embed = keras.layers.Embedding(30, 8, mask_zero=True)
    >>> encoder = keras.layers.GRU(8, return_sequences=True, return_state=True)
    >>> outputs, state = encoder(embed(source))
    >>> decoder = AttentionDecoder(keras.layers.GRUCell(8), KMemoryAttention(4), mixing_units=8)
    >>> decoded = decoder(embed(target), outputs, initial_state=[state])
    >>> model = keras.Model([source, target], keras.layers.Dense(30)(decoded))
    >>> model.output_shape
    (None, None, 30)
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
        check_share("dropout", dropout)
        self.supports_masking = True
        options = (read, input_feeding, mixing_units, mixing_activation, mixing_from)
        if isinstance(cell, AttentionCell):
            if type(cell).call is not AttentionCell.call:
                raise ValueError(
                    "`cell`: expected a class that does not override `AttentionCell.call`: a "
                    f"decoder runs the parts of a step, so {type(cell).__name__}.call never would."
                )
            if (attention, *options) != (None, "after", True, None, "tanh", "output_and_context"):
                raise ValueError(
                    "`cell`: an AttentionCell has its own attention, way of reading and mixing "
                    "layer; pass these options to it, not to the AttentionDecoder."
                )
            self.cell = cell
        else:
            own = {"dtype": self.dtype_policy, "trainable": self.trainable}
            self.cell = AttentionCell(cell, attention, *options, name=f"{self.name}_cell", **own)
        check_policy("cell", self.cell, self)
        self.seed = seed
        self.return_alignments = return_alignments
        self.return_state = return_state
        is_generator = isinstance(seed, keras.random.SeedGenerator)
        self.seed_generator = seed if is_generator else SeedGenerator(seed)
        # Public, for models that prepare the memory themselves.
        self.teacher_force = TeacherForcedDecoder(self.cell, dropout, self.seed_generator)
        self._widths: tuple[int | None, int | None] = (None, None)  # of inputs, encoder outputs
        freeze_inside(self)

    @property
    def dropout(self) -> float:
        """Dropout rate of each cell's inputs in training."""
        return self.teacher_force.dropout

    @dropout.setter
    def dropout(self, dropout: float) -> None:
        check_share("dropout", dropout)
        self.teacher_force.dropout = dropout

    def build(self, inputs_shape: Any, encoder_outputs_shape: Any) -> None:
        widths = (inputs_shape[-1], encoder_outputs_shape[-1])
        for name, width in zip(("inputs", "encoder_outputs"), widths, strict=True):
            if width is None:
                raise ValueError(f"`{name}`: expected a known number of units; got None.")
        # Tracing one step is enough: the loop has no further layers.
        inputs, outputs = [keras.KerasTensor((1, 1, width), self.compute_dtype) for width in widths]
        trace(self._one_step, inputs, outputs)
        self._widths = widths
        self.built = True

    def _one_step(self, inputs: Any, encoder_outputs: Any) -> Any:
        """One step of the cell on a source of one token."""
        cell, attention = self.cell, self.cell.attention
        memory = attention.prepare(encoder_outputs, full_mask(encoder_outputs, None))
        _check_record(attention, memory)
        if not cell.built:
            # Built before `initial_state`: a user's cell may compute its first state from weights.
            cell.build(inputs.shape, keras.tree.map_structure(lambda x: x.shape, memory), None)
        return cell(inputs, memory, cell.initial_state(memory, 1))[0]

    def __call__(
        self,
        inputs: Any,
        encoder_outputs: Any,
        initial_state: Any = None,
        inputs_mask: Any = None,
        encoder_outputs_mask: Any = None,
        **kwargs: Any,
    ) -> Any:
        # Checked here, not in `call`: Keras adds a list of all arguments to an error of `call`.
        _check_sequence("inputs", inputs, "target_length", self._widths[0])
        _check_sequence("encoder_outputs", encoder_outputs, "source_length", self._widths[1])
        check_size("encoder_outputs", "batch", encoder_outputs.shape[0], inputs.shape[0])
        check_mask("inputs_mask", inputs_mask, inputs)
        check_mask("encoder_outputs_mask", encoder_outputs_mask, encoder_outputs)
        if initial_state is not None:
            self._parts_of_states(initial_state, inputs.shape[0])
        masks = {"inputs_mask": inputs_mask, "encoder_outputs_mask": encoder_outputs_mask}
        # If a mask is not given, Keras passes the mask that it attached.
        given = {name: mask for name, mask in masks.items() if mask is not None}
        found = super().__call__(inputs, encoder_outputs, initial_state, **given, **kwargs)
        if inputs_mask is not None:
            # Keras attaches only masks of arguments named `mask`.
            outputs = found[0] if isinstance(found, (list, tuple)) else found
            attach_mask(outputs, ops.cast(inputs_mask, "bool"))
        return found

    def call(
        self,
        inputs: Any,
        encoder_outputs: Any,
        initial_state: Any = None,
        inputs_mask: Any = None,
        encoder_outputs_mask: Any = None,
        training: bool = False,
    ) -> Any:
        real = padding_last("inputs_mask", not_empty("inputs", full_mask(inputs, inputs_mask)))
        source = not_empty("encoder_outputs", full_mask(encoder_outputs, encoder_outputs_mask))
        memory = self.cell.attention.prepare(encoder_outputs, source)
        decoded = self.teacher_force(
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

    @property
    def encoder_units(self) -> int | None:
        """The width of the encoder outputs that this layer takes; None until it is built."""
        return self._widths[1]

    def cell_states(self, initial_state: Any, batch: int | None = None) -> list[list[Any]]:
        """The states of each cell, from the argument `initial_state` of a call.

        Args:
            initial_state: see the call arguments.
            batch: int or None. The number of sources, if it is known.

        Raises:
            ValueError: if the states do not have the number or widths of the cells' states, or a
                state is not [batch, units].
        """
        parts = self._parts_of_states(initial_state, batch)
        states = [ops.concatenate(each, axis=-1) for each in parts]
        return keras.tree.pack_sequence_as(self._state_units, states)

    @property
    def _state_units(self) -> list[list[int]]:
        """The widths of each cell's states."""
        return [state_units(cell) for cell in self.cell.cells]

    def _parts_of_states(self, initial_state: Any, batch: int | None) -> list[Any]:
        """For each state of the cells, its array, or the two arrays to concatenate into it."""
        if isinstance(initial_state, dict):  # whose states Keras would sort by name
            raise ValueError("`initial_state`: expected a list of states; got a dict.")
        given = keras.tree.flatten(initial_state)
        for state in given:
            check_rank("initial_state", state, ("batch", "units"))
            check_size("initial_state", "batch", state.shape[0], batch)
        expected = keras.tree.flatten(self._state_units)
        widths = [state.shape[-1] for state in given]
        joins = len(given) == 2 * len(expected)
        parts = self._pairs(initial_state) if joins else [(state,) for state in given]
        if None in widths or [sum(x.shape[-1] for x in each) for each in parts] != expected:
            raise ValueError(
                f"`initial_state`: expected states {expected} wide, as the cells have them; got "
                f"{widths}. `Bridge` maps an encoder's states to other widths."
            )
        return parts

    def _pairs(self, initial_state: Any) -> list[Any]:
        """Pairs of a forward and a backward state, from one bidirectional layer for each cell."""
        layers = [keras.tree.flatten(states) for states in initial_state]
        if [len(states) for states in layers] != [2 * len(units) for units in self._state_units]:
            if len(self._state_units) > 1:  # layers and directions cannot be told apart
                raise ValueError(
                    "`initial_state`: expected a list of states for each cell, such as "
                    "[[forward, backward], [forward, backward]] for two GRU cells and the states "
                    "of `Bidirectional` layers; got another nesting."
                )
            layers = [keras.tree.flatten(initial_state)]
        return [
            pair
            for states in layers
            for pair in zip(states[: len(states) // 2], states[len(states) // 2 :], strict=True)
        ]

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
            found.append([spec(units) for units in keras.tree.flatten(self._state_units)])
        return found[0] if len(found) == 1 else tuple(found)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        del inputs
        if previous_mask is None or not (self.return_alignments or self.return_state):
            return previous_mask
        num_states = len(keras.tree.flatten(self._state_units)) if self.return_state else 0
        others = int(self.return_alignments) + num_states
        return [previous_mask, *[None] * others]

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "cell": serialise_shared(self.cell),
            "dropout": self.dropout,
            "seed": keras.saving.serialize_keras_object(self.seed),
            "return_alignments": self.return_alignments,
            "return_state": self.return_state,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "AttentionDecoder":
        config = {**config, "cell": keras.saving.deserialize_keras_object(config["cell"])}
        if isinstance(config["seed"], dict):  # a SeedGenerator
            config["seed"] = keras.saving.deserialize_keras_object(config["seed"])
        return cls(**config)


def _check_record(attention: Any, memory: Any) -> None:
    """Raises ValueError unless a memory is a NamedTuple of arrays with a field `rows`."""
    got = [type(memory).__name__]
    fields = getattr(memory, "_fields", ())
    if "rows" in fields:
        got = [
            f"{name}={value}"
            for name, value in zip(fields, memory, strict=True)
            if not all(hasattr(x, "shape") for x in keras.tree.flatten(value))
        ]
    if got:
        raise ValueError(
            f"`{type(attention).__name__}.prepare`: expected a NamedTuple of arrays with a field "
            f"`rows`; got {', '.join(got)}."
        )


def _check_sequence(name: str, x: Any, length: str, units: int | None) -> None:
    check_rank(name, x, ("batch", length, "units"))
    if x.shape[1] == 0:
        raise ValueError(f"`{name}`: expected a {length} of at least 1; got 0.")
    check_size(name, "units", x.shape[-1], units)

"""`AttentionCell`: one decoder step with attention."""

from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.attention.base import Attention, scores_in
from seq2seq_memattn.checks import (
    check_choice,
    check_int,
    check_policy,
    check_rank,
    check_size,
    check_state,
)
from seq2seq_memattn.compute.private import freeze_inside, layers_inside, serialise_shared
from seq2seq_memattn.compute.rows import on_rows
from seq2seq_memattn.loops.cell_steps import CellStep, cell_step, output_units, state_units
from seq2seq_memattn.loops.products import Products


class AttentionCellState(NamedTuple):
    """The state of a decoder between steps.

    Fields:
        cells: for each cell, a list of float [batch, queries, units].
        context: float [batch, queries, memory_units]. Zeros at first.
        attention: the attention's own state.
    """

    cells: Any
    context: Any
    attention: Any


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class AttentionCell(keras.layers.Layer):
    """Attention cell: one decoder step, made of Keras RNN cells and an attention.

    Source: google/seq2seq, `decoders/attention_decoder.py`, for the defaults with `mixing_units`:
    the query is the top cell's output at the current step, the raw context is fed back, and the
    step returns tanh(W [output; context] + b). `read="before"` follows Bahdanau et al. (2014): the
    query is the first state of the top cell before the step, and the context is an input of the
    same step.

    Args:
        cell: a Keras RNN cell without dropout, a `StackedRNNCells`, or a list of cells, lowest
            first.
        attention: an `Attention`.
        read: "after" or "before": when the memory is read, relative to the cells' step.
        input_feeding: bool. Whether a context is part of the lowest cell's input: with
            `read="after"`, the context of the previous step; with `read="before"`, the context of
            the current step.
        mixing_units: int > 0 or None. Width of the mixing layer. None: no such layer; a step then
            returns the output and the context concatenated, or with `mixing_from="output"` only the
            output.
        mixing_activation: "tanh" or "linear".
        mixing_from: "output_and_context" or "output". What the mixing layer reads.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Call arguments:
        inputs: float [batch, queries, embedding_dim].
        memory: record from `attention.prepare`.
        state: `AttentionCellState`.
        masks: for each cell, a dropout mask, float [batch, queries, n], for the inputs that are
            made inside the step (the context, or the output of the cell below); (): no dropout.
        training: bool.

    Returns:
        outputs: float [batch, queries, units]. `units` is `mixing_units`. Without a mixing layer,
            it is the top cell's units plus the width of the context, or with
            `mixing_from="output"` the top cell's units alone.
        scores: float [batch, queries, rows]. Of attentions with windows, outside of training, a
            record that `attention.alignment(scores, memory)` turns into an array.
        state: `AttentionCellState`.

    Raises:
        ValueError: if `cell` is not made of RNN cells, a cell has its own dropout, `attention` is
            not an `Attention`, a cell or the attention has another dtype policy, or an activation
            is given without `mixing_units`.

    Example:
    >>> import keras
    >>> from keras import ops
    >>> from seq2seq_memattn import AttentionCell, KMemoryAttention
    >>> cell = AttentionCell(keras.layers.LSTMCell(6), KMemoryAttention(4), mixing_units=5)
    >>> memory = cell.attention.prepare(ops.zeros([2, 9, 8]))
    >>> state = cell.initial_state(memory, num_queries=3)
    >>> outputs, scores, state = cell(ops.zeros([2, 3, 7]), memory, state)
    >>> tuple(outputs.shape), tuple(scores.shape)
    ((2, 3, 5), (2, 3, 4))
    """

    def __init__(
        self,
        cell: Any,
        attention: Attention,
        read: Literal["after", "before"] = "after",
        input_feeding: bool = True,
        mixing_units: int | None = None,
        mixing_activation: Literal["tanh", "linear"] = "tanh",
        mixing_from: Literal["output_and_context", "output"] = "output_and_context",
        **kwargs: Any,
    ) -> None:
        kwargs["autocast"] = False  # Keras would round the positions in records to bfloat16
        super().__init__(**kwargs)
        self.supports_masking = True
        check_choice("read", read, ("after", "before"))
        check_choice("mixing_activation", mixing_activation, ("tanh", "linear"))
        check_choice("mixing_from", mixing_from, ("output_and_context", "output"))
        if mixing_units is not None:
            mixing_units = check_int("mixing_units", mixing_units)
        elif mixing_activation != "tanh":
            raise ValueError(
                f"`mixing_activation`: {mixing_activation!r} needs `mixing_units`; got None."
            )
        self.cells = _cells(cell)
        for inner in self.cells:
            check_policy("cell", inner, self)
            _refuse_dropout(inner)
        if not isinstance(attention, Attention):
            raise ValueError(
                "`attention`: expected an Attention of this package, such as KMemoryAttention; got "
                f"{attention!r}."
            )
        check_policy("attention", attention, self)
        self.attention = attention
        self.read = read
        self.input_feeding = input_feeding
        self.mixing_units = mixing_units
        self.mixing_activation = mixing_activation
        self.mixing_from = mixing_from
        self._widths: dict[str, int] | None = None  # what it was built with
        self.mixing = (
            keras.layers.Dense(
                mixing_units,
                mixing_activation,
                dtype=self.dtype_policy,
                trainable=self.trainable,
                name=f"{self.name}_mixing",
            )
            if mixing_units
            else None
        )
        freeze_inside(self)

    def build(self, inputs_shape: Any, memory_shape: Any, state_shape: Any) -> None:
        del state_shape  # the cells know their own
        input_units, context_units = inputs_shape[-1], memory_shape.rows[-1]
        self._widths = {"input_units": input_units, "context_units": context_units}
        width = input_units + (context_units if self.input_feeding else 0)
        for cell in self.cells:
            if not cell.built:  # `load_model` may have built the cell already
                cell.build((None, width))
            _check_width(cell, width)
            width = output_units(cell)
        if self.mixing is not None:
            both = self.mixing_from == "output_and_context"
            self.mixing.build((None, None, width + (context_units if both else 0)))
        self.attention.built = self.built = True

    def get_build_config(self) -> dict[str, int] | None:
        return self._widths

    def build_from_config(self, config: dict[str, Any]) -> None:
        # From widths, not shapes: the shape of a record would lose its field names when saved.
        inputs_shape = (None, None, config["input_units"])
        memory_shape = SimpleNamespace(rows=(None, None, config["context_units"]))
        self.build(inputs_shape, memory_shape, None)

    def initial_state(
        self, memory: Any, num_queries: int, cell_states: Any = None
    ) -> AttentionCellState:
        """The state before the first step.

        Args:
            memory: record from `attention.prepare`.
            num_queries: int > 0. Hypotheses of each source.
            cell_states: for each cell, a list of float [batch, units], as a bridge makes them.
                None: what the cells' `get_initial_state` returns; zeros for a cell without it.

        Raises:
            ValueError: if the number or widths of `cell_states` differ from the cells' states.
        """
        rows = _rows(memory)
        batch = ops.shape(rows)[0]
        if cell_states is None:
            cell_states = [self._first_states(cell, batch) for cell in self.cells]
        self._check_states(cell_states)
        cells = [
            [
                ops.broadcast_to(
                    ops.cast(state, self.compute_dtype)[:, None, :],
                    (batch, num_queries, state.shape[-1]),
                )
                for state in states
            ]
            for states in cell_states
        ]
        context = ops.zeros((batch, num_queries, rows.shape[-1]), dtype=self.compute_dtype)
        return AttentionCellState(cells, context, self.attention.initial_state(memory, num_queries))

    def _check_states(self, cell_states: Any) -> None:
        expected = [state_units(cell) for cell in self.cells]
        problem = f"`cell_states`: expected a list of states for each cell, {expected} wide"
        if not (_is_list(cell_states) and all(map(_is_list, cell_states))):
            raise ValueError(f"{problem}; got no list of lists.")
        for state in (state for states in cell_states for state in states):
            check_rank("cell_states", state, ("batch", "units"))
        widths = [[state.shape[-1] for state in states] for states in cell_states]
        if widths != expected:
            raise ValueError(f"{problem}; got {widths}.")

    def _first_states(self, cell: Any, batch: Any) -> list[Any]:
        if not hasattr(cell, "get_initial_state"):
            return [
                ops.zeros((batch, units), dtype=self.compute_dtype) for units in state_units(cell)
            ]
        states = cell.get_initial_state(batch_size=batch)
        return list(states) if isinstance(states, (list, tuple)) else [states]

    def __call__(self, inputs: Any, memory: Any, state: Any, **kwargs: Any) -> Any:
        # Checked here, not in `call`: Keras adds a list of all arguments to an error of `call`.
        check_state(state, AttentionCellState)
        rows, context, widths = _rows(memory), state[1], self._widths or {}
        for name, x in (("inputs", inputs), ("state.context", context)):
            check_rank(name, x, ("batch", "queries", "units"))
        check_size("inputs", "units", inputs.shape[-1], widths.get("input_units"))
        check_size("inputs", "queries", inputs.shape[1], context.shape[1])
        for name, x in (("memory.rows", rows), ("state.context", context)):
            check_size(name, "batch", x.shape[0], inputs.shape[0])
            units = widths.get("context_units", rows.shape[-1])
            check_size(name, "units", x.shape[-1], units)
        return super().__call__(inputs, memory, state, **kwargs)

    def call(
        self, inputs: Any, memory: Any, state: Any, training: bool = False, masks: Any = ()
    ) -> tuple[Any, Any, AttentionCellState]:
        inputs = ops.cast(inputs, self.compute_dtype)
        steps = self.cell_steps(inputs.shape[-1])
        projected = steps[0].project(_flat(inputs), training)
        output, scores, state = self.step_without_mixing(
            steps,
            self.products(steps, memory, training),
            projected,
            memory,
            AttentionCellState(*state),
            num_queries=inputs.shape[1],
            masks=[_flat(mask) for mask in masks],
            inputs=inputs,
            training=training,
        )
        return self.mix(output, state.context), scores, state

    @property
    def input_units(self) -> int:
        """The width of a built cell's inputs."""
        return self._built_width("input_units")

    @property
    def output_units(self) -> int:
        """The width of a built cell's outputs."""
        if self.mixing_units:
            return self.mixing_units
        reads_context = self.mixing_from == "output_and_context"
        context_units = self._built_width("context_units") if reads_context else 0
        return output_units(self.cells[-1]) + context_units

    def _built_width(self, name: str) -> int:
        if self._widths is None:
            raise ValueError(f"{self.name} is not built yet: its first call sets its widths.")
        return self._widths[name]

    def cell_steps(self, ahead: int) -> list[CellStep]:
        """The step of each cell.

        `ahead` says how many of the lowest cell's inputs are known before the loop.
        """
        widths = [ahead] + [0] * (len(self.cells) - 1)
        return [
            cell_step(cell, f"cell_{index}", width)
            for index, (cell, width) in enumerate(zip(self.cells, widths, strict=True))
        ]

    def products(self, steps: list[CellStep], memory: Any, training: bool = False) -> Products:
        """Matrix products of a loop over steps that read `memory`; `training` as in `product`."""
        weights = {name: w for step in steps for name, w in step.weights().items()}
        return Products(weights, self.rows_to_combine(memory.rows), training)

    def rows_to_combine(self, rows: Any) -> Any:
        """`rows`, if `attention.combines_plainly` and their width is not 0; else None."""
        return rows if self.attention.combines_plainly and rows.shape[-1] else None

    def step_without_mixing(
        self,
        steps: list[CellStep],
        products: Products,
        projected: Any,
        memory: Any,
        state: AttentionCellState,
        num_queries: int,
        masks: Any = (),
        inputs: Any = None,
        training: bool = False,
    ) -> tuple[Any, Any, AttentionCellState]:
        """One step without the mixing layer, for loops that project all their inputs beforehand.

        Args:
            steps: from `cell_steps`.
            products: the loop's products.
            projected: float [batch * queries, n] from the lowest step's `project`.
            memory, state, num_queries, inputs, training: as in `call`.
            masks: as in `call`, but [batch * queries, n].

        Returns:
            output: float [batch, queries, units], of the top cell.
            scores, state: as in `call`.
        """
        cells = [[_flat(array) for array in states] for states in state.cells]
        context, attention_state = state.context, state.attention
        scores = None
        if self.read == "before":
            query = state.cells[-1][0]
            context, scores, attention_state = self._read_memory(
                products, query, memory, attention_state, inputs, training
            )
        inside = _flat(context) if self.input_feeding else projected[:, :0]
        moved = []
        for index, (step, states) in enumerate(zip(steps, cells, strict=True)):
            if masks and inside.shape[-1]:
                inside = inside * masks[index]
            inside, states = step.take(products, projected, inside, states)
            moved.append([_by_query(array, num_queries) for array in states])
            if index + 1 < len(steps):
                projected = steps[index + 1].project(inside[:, :0])
        output = _by_query(inside, num_queries)
        if self.read == "after":
            context, scores, attention_state = self._read_memory(
                products, output, memory, attention_state, inputs, training
            )
        return output, scores, AttentionCellState(moved, context, attention_state)

    def _read_memory(
        self, products: Products, query: Any, memory: Any, state: Any, inputs: Any, training: bool
    ) -> tuple[Any, Any, Any]:
        found: Any = self.attention.score(query, memory, state, inputs, training)
        if not isinstance(found, tuple) or len(found) != 2:
            kind = type(self.attention).__name__
            got = f"{len(found)} values" if isinstance(found, tuple) else type(found).__name__
            raise ValueError(f"`{kind}.score`: expected a pair, scores and state; got {got}.")
        scores, state = scores_in(found[0], self.compute_dtype), found[1]
        if products.rows is None:
            return self.attention.combine(scores, memory.rows), scores, state
        return products.combine(self.attention, scores), scores, state

    @property
    def mixes_plainly(self) -> bool:
        """Whether `mix` is not overridden, so that search may compute it in its own way."""
        own, base = type(self), AttentionCell
        return own.mix is base.mix and own.mixing_inputs is base.mixing_inputs

    def mix(self, output: Any, context: Any) -> Any:
        """The step's outputs: [..., units] and [..., memory_units] -> [..., output_units]."""
        inputs = self.mixing_inputs(output, context)
        return inputs if self.mixing is None else on_rows(self.mixing, inputs)

    def mixing_inputs(self, output: Any, context: Any) -> Any:
        """The mixing layer's inputs, or without this layer the step's outputs: [..., n]."""
        if self.mixing_from == "output_and_context" and context.shape[-1]:
            return ops.concatenate([output, context], axis=-1)
        return output

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "cell": [serialise_shared(cell) for cell in self.cells],
            "attention": serialise_shared(self.attention),
            "read": self.read,
            "input_feeding": self.input_feeding,
            "mixing_units": self.mixing_units,
            "mixing_activation": self.mixing_activation,
            "mixing_from": self.mixing_from,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "AttentionCell":
        config = dict(config)
        config["cell"] = [keras.saving.deserialize_keras_object(c) for c in config["cell"]]
        config["attention"] = keras.saving.deserialize_keras_object(config["attention"])
        return cls(**config)


def _rows(memory: Any) -> Any:
    """`memory.rows`; raises ValueError if `memory` is not a record."""
    if not hasattr(memory, "rows"):
        raise ValueError(
            "`memory`: expected the record that `attention.prepare` returns; got "
            f"{type(memory).__name__}."
        )
    return memory.rows


def _cells(cell: Any) -> list[Any]:
    found = [
        inner
        for each in (cell if _is_list(cell) else [cell])
        for inner in (each.cells if type(each) is keras.layers.StackedRNNCells else [each])
    ]
    # A subclass of StackedRNNCells may do more than run its cells.
    no_cells = (keras.layers.RNN, keras.layers.StackedRNNCells)
    for each in found or [found]:
        is_layer = isinstance(each, keras.layers.Layer) and not isinstance(each, no_cells)
        if not is_layer or not hasattr(each, "state_size"):
            got = type(each).__name__ if isinstance(each, keras.layers.Layer) else repr(each)
            raise ValueError(f"`cell`: expected a Keras RNN cell, such as GRUCell; got {got}.")
    if len({id(each) for each in found}) < len(found):
        raise ValueError("`cell`: expected different cells; one is in the list twice.")
    return found


def _is_list(x: Any) -> bool:
    return isinstance(x, (list, tuple))


def _check_width(cell: Any, width: int) -> None:
    """Raises ValueError if one of Keras's cells was built for inputs of another width."""
    kinds = (keras.layers.LSTMCell, keras.layers.GRUCell, keras.layers.SimpleRNNCell)
    if isinstance(cell, kinds) and cell.kernel.shape[0] != width:
        raise ValueError(
            f"`cell`: expected a cell not yet built, or built with inputs of {width} units; "
            f"got one built with {cell.kernel.shape[0]}."
        )


def _refuse_dropout(cell: Any) -> None:
    """Raises ValueError for a cell with dropout, or one with such a Keras cell inside.

    A Keras cell keeps its dropout mask until the `RNN` layer around it resets the mask, which no
    loop here does.
    """
    for name, instead in (
        ("dropout", "Use the `dropout` of AttentionDecoder, which is drawn anew at each step."),
        ("recurrent_dropout", "It has no counterpart here."),
    ):
        inner = [each for each in layers_inside(cell) if hasattr(each, "get_dropout_mask")]
        for each in (cell, *inner):
            share = getattr(each, name, 0.0)
            if isinstance(share, (int, float)) and share:
                raise ValueError(f"`cell`: expected a cell without {name}; got {share}. {instead}")


def _flat(x: Any) -> Any:
    """[batch, queries, n] -> [batch * queries, n]."""
    return ops.reshape(x, (-1, x.shape[-1])) if x.shape[-1] else x[:, 0, :]


def _by_query(x: Any, num_queries: int) -> Any:
    """[batch * queries, n] -> [batch, queries, n]."""
    return ops.reshape(x, (-1, num_queries, x.shape[-1]))

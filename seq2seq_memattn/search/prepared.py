"""A model prepared for search: what is the same at every step is computed once."""

from typing import Any, NamedTuple

from keras import ops

from seq2seq_memattn.compute.int8 import outside_loops
from seq2seq_memattn.compute.precision import (
    at_least_float32,
    product,
    product_dtype,
    weights_for,
)
from seq2seq_memattn.layers.attention_cell import AttentionCell, AttentionCellState
from seq2seq_memattn.loops.products import Products
from seq2seq_memattn.search.folding import Folds, fold, folded_steps, plain_mixing
from seq2seq_memattn.search.protocol import Preparable


class PreparedWeights(NamedTuple):
    """A model's weights as `PreparedModel` uses them, computed once for all sources.

    Fields:
        embeddings: float [vocab, embedding_dim].
        table: float [vocab, n]. The embeddings, projected for the lowest cell.
        products: the weight matrices that a step multiplies by, by name; see `weights_for`.
        folds: `Folds`, or () where nothing is folded.
        mixing: [n, mixing_units]. The mixing layer's matrix, or () if it is folded, if it is
            quantised, or if there is no such layer.
        output: [units, vocab]. The output layer's matrix, or () if the layer is not linear.
        bias: float [vocab]. The output layer's bias, or () if `output` is ().
    """

    embeddings: Any
    table: Any
    products: Any
    folds: Any
    mixing: Any
    output: Any
    bias: Any


class SearchMemory(NamedTuple):
    """What each step of a search reads.

    Folded rows (see `folding.py`) are kept next to the attention's record, because an attention may
    read the record's own rows in `score` and `alignment`.

    Fields:
        attention: the record of the attention's `prepare`.
        rows: float [batch, rows, n]. The rows that are summed with the scores as weights: the
            record's, or folded ones.
    """

    attention: Any
    rows: Any


class PreparedModel:
    """A `Seq2Seq` or `Searchable`, prepared for search; see `SearchedModel` and `AlignedModel`.

    A table has each token's embedding, already projected for the lowest cell. A standard LSTM or
    GRU cell then needs one matrix product per step, or two if it is a GRU with inputs that are
    computed in the step. If `folded`, the linear maps of the context are applied to the memory's
    rows.

    Args:
        model: `Seq2Seq` or `Searchable`.
        folded: bool. Whether to apply the linear maps of the context to the rows once per source,
            where that is possible; see `fold`.
        weights: from `make_weights` with the same `folded`, if they are computed outside the graph
            that uses them. None: computed here.
    """

    def __init__(
        self,
        model: Preparable,
        folded: bool = True,
        weights: PreparedWeights | None = None,
    ) -> None:
        self.model = model
        self._cell = model.cell
        weights = make_weights(model, folded) if weights is None else weights
        self.weights: PreparedWeights = outside_loops(weights)
        self._folds: Folds | None = self.weights.folds or None
        self._steps = _steps(model.cell, self._folds)

    def start(self, source: Any, num_queries: int) -> tuple[SearchMemory, AttentionCellState]:
        """See `SearchedModel`."""
        memory, cell_states = self.model.encode(source)
        state = self._cell.initial_state(memory, num_queries, cell_states)
        rows = memory.rows
        if self._folds is not None:
            rows = product(rows, self._folds.context)
            shape = (*ops.shape(state.context)[:2], rows.shape[-1])
            # A context of zeros, mapped, is zeros.
            state = state._replace(context=ops.zeros(shape, dtype=rows.dtype))
        return SearchMemory(memory, ops.cast(rows, product_dtype(self._cell))), state

    def step(
        self, tokens: Any, memory: SearchMemory, state: AttentionCellState
    ) -> tuple[Any, Any, AttentionCellState]:
        """See `SearchedModel`; logits are float32 at least."""
        mixed, scores, state = self.step_below_logits(tokens, memory, state)
        return self.to_logits(mixed), scores, state

    def step_below_logits(
        self, tokens: Any, memory: SearchMemory, state: AttentionCellState
    ) -> tuple[Any, Any, AttentionCellState]:
        """A step without the output layer; returns that layer's inputs, scores and state.

        The output layer's inputs are [batch, queries, n].
        """
        weights = self.weights
        output, scores, state = self._cell.step_without_mixing(
            self._steps,
            _RoundedProducts(weights.products, self._cell.rows_to_combine(memory.rows)),
            ops.take(weights.table, ops.reshape(tokens, (-1,)), axis=0),
            memory.attention,
            state,
            num_queries=tokens.shape[1],
            inputs=ops.take(weights.embeddings, tokens, axis=0),
        )
        return self._mix(output, state.context), scores, state

    def to_logits(self, mixed: Any) -> Any:
        """The model's logits, from the prepared matrix of the output layer if there is one."""
        weights = self.weights
        if isinstance(weights.bias, tuple):
            return self.model.to_logits(mixed)
        logits = product(mixed, weights.output) + ops.cast(weights.bias, mixed.dtype)
        return at_least_float32(logits)

    def _mix(self, output: Any, context: Any) -> Any:
        """As `AttentionCell.mix`, for a context that may already be mapped."""
        folds, mixing = self._folds, plain_mixing(self._cell)
        if mixing is None:
            return self._cell.mix(output, context)
        if folds is not None and folds.has_mixing:
            mixed = product(output, folds.output) + context[..., folds.gates :]
        else:
            inputs = self._cell.mixing_inputs(output, context)
            mixed = product(inputs, self.weights.mixing)
        return mixing.activation(mixed + ops.cast(mixing.bias, mixed.dtype))

    def without_sources(self, memory: SearchMemory) -> SearchMemory:
        """The memory without the arrays of source length that `step` does not read."""
        return memory._replace(attention=self._cell.attention.without_sources(memory.attention))

    def alignment(self, scores: Any, memory: SearchMemory) -> Any:
        """How much each query read from each source position: [batch, queries, source_length]."""
        return self._cell.attention.alignment(scores, memory.attention)

    def positions_scored(self, scores: Any, memory: SearchMemory) -> Any:
        """Number of encoder states scored for each query: float32 [batch, queries]."""
        return self._cell.attention.positions_scored(scores, memory.attention)


class _RoundedProducts(Products):
    """Products whose rows may already be rounded and folded."""

    def combine(self, attention: Any, scores: Any) -> Any:
        del attention
        return product(scores, self.rows)


def make_weights(model: Preparable, folded: bool = True) -> PreparedWeights:
    """The `PreparedWeights` of a model's current weights."""
    cell = model.cell
    embeddings = model.token_embeddings()
    folds = fold(cell) if folded else None
    steps = _steps(cell, folds)
    output, bias = model.output_map() or ((), ())
    return PreparedWeights(
        embeddings=embeddings,
        table=steps[0].project(embeddings),
        products={name: each for step in steps for name, each in step.weights().items()},
        folds=_for_products(cell, folds) if folds else (),
        mixing=_mixing_matrix(cell, folds),
        output=output if isinstance(output, tuple) else weights_for(cell, output),
        bias=bias if isinstance(bias, tuple) else ops.convert_to_tensor(bias),
    )


def _mixing_matrix(cell: AttentionCell, folds: Folds | None) -> Any:
    mixing = plain_mixing(cell)
    if mixing is None or (folds is not None and folds.has_mixing):
        return ()
    return weights_for(cell, mixing.kernel)


def _for_products(cell: AttentionCell, folds: Folds) -> Folds:
    # The context's maps are applied once per source. With int8 products, they stay in float32.
    return Folds(ops.cast(folds.context, product_dtype(cell)), weights_for(cell, folds.output))


def _steps(cell: AttentionCell, folds: Folds | None) -> list[Any]:
    return cell.cell_steps(cell.input_units) if folds is None else folded_steps(cell, folds)

"""The loops over decoder steps under teacher forcing."""

from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.cell import AttentionCell, AttentionCellState
from seq2seq_memattn.gates import cell_step, output_units
from seq2seq_memattn.recurrence import make_steps, run_layer, scan


class Decoded(NamedTuple):
    """What a decoder makes of known targets.

    Fields:
        outputs: float [batch, target_length, n]. What the logits are made of; 0 on padding with
            stepped decoding, unspecified there otherwise.
        strengths: float [batch, target_length]. `Attention.strength` of every step, 0 on padding;
            None for an attention that has none.
    """

    outputs: Any
    strengths: Any = None


class TeacherForcedDecoder:
    """Runs an `AttentionCell` over known targets.

    With input feeding every step waits for the context of the step before. Without it (or with
    nothing to feed) the cells run as plain recurrent layers and the memory is read for all
    steps at once.

    Args:
        cell: a built `AttentionCell`.
        dropout: float in [0, 1). Share of each cell's inputs dropped, drawn for each step.
        seed_generator: a `keras.random.SeedGenerator`.
    """

    def __init__(self, cell: AttentionCell, dropout: float, seed_generator: Any) -> None:
        self.cell = cell
        self.dropout = dropout
        self.seed_generator = seed_generator

    def __call__(
        self, embedded: Any, lengths: Any, memory: Any, cell_states: Any, training: bool
    ) -> Decoded:
        """Runs all steps.

        Args:
            embedded: float [batch, target_length, embedding_dim].
            lengths: int32 [batch]. Target lengths, end token included.
            memory: record from `attention.prepare`.
            cell_states: for each cell, a list of float [batch, units].
            training: bool. Whether dropout is on and gradients will be asked for.
        """
        steps = make_steps(lengths, ops.shape(embedded)[1])
        state = self.cell.initial_state(memory, 1, cell_states)
        drop = self.dropout if training else 0.0
        if self._is_parallel(memory, state):
            return Decoded(self._run_parallel(embedded, steps, memory, state, drop, training))
        return self._run_stepped(embedded, steps, memory, state, drop, training)

    def _is_parallel(self, memory: Any, state: AttentionCellState) -> bool:
        feeds = self.cell.input_feeding and memory.rows.shape[-1]
        return not feeds and self.cell.read == "after" and not keras.tree.flatten(state.attention)

    def _drop(self, x: Any, rate: float) -> Any:
        return keras.random.dropout(x, rate, seed=self.seed_generator) if rate else x

    def _run_parallel(
        self, embedded: Any, steps: Any, memory: Any, state: Any, drop: float, training: bool
    ) -> Any:
        stream = steps.pack(embedded)
        for index, states in enumerate(state.cells):
            step = cell_step(self.cell.cells[index], f"cell_{index}", stream.shape[-1])
            first = [steps.sort(array[:, 0]) for array in states]
            stream = run_layer(step, self._drop(stream, drop), first, steps, training)[0]
        queries = steps.unpack(stream)
        context, _, _ = self.cell.attention.read(queries, memory, training=training)
        return self.cell.mix(queries, context)

    def _run_stepped(
        self, embedded: Any, steps: Any, memory: Any, state: Any, drop: float, training: bool
    ) -> Decoded:
        cell = self.cell
        stream = self._drop(steps.pack(embedded), drop)
        cell_steps = cell.steps(stream.shape[-1])
        memory = keras.tree.map_structure(steps.sort, memory)
        carry = keras.tree.map_structure(steps.sort, state)
        units, context_units = output_units(cell.cells[-1]), memory.rows.shape[-1]
        masks = self._masks(stream, context_units, drop)
        has_strength = cell.attention.strength(state.attention) is not None

        def step(products: Any, carry: Any, inputs: Any, crop: Any) -> tuple[Any, list[Any]]:
            projected, fed, *masks = inputs
            output, _, carry = cell.advance(
                cell_steps,
                products,
                projected,
                keras.tree.map_structure(crop, memory),
                carry,
                num_queries=1,
                masks=masks,
                inputs=fed[:, None, :],
                training=training,
            )
            found = [output[:, 0], carry.context[:, 0]]
            if has_strength:
                found.append(ops.cast(cell.attention.strength(carry.attention), output.dtype))
            return carry, found

        outputs, contexts, *strengths = scan(
            step,
            carry,
            [cell_steps[0].project(stream), stream, *masks],
            cell.products(cell_steps, memory),
            steps,
            [units, context_units, *([1] if has_strength else [])],
            training,
        )
        return Decoded(
            steps.unpack(cell.mix(outputs, contexts)),
            steps.unpack(strengths[0])[:, :, 0] if has_strength else None,
        )

    def _masks(self, stream: Any, context_units: int, drop: float) -> list[Any]:
        """For each cell, the dropout of those inputs that the loop makes, for all steps."""
        if not drop:
            return []
        widths = [context_units if self.cell.input_feeding else 1]
        widths += [output_units(cell) for cell in self.cell.cells[:-1]]
        rows = ops.shape(stream)[0]
        return [self._drop(ops.ones((rows, width), stream.dtype), drop) for width in widths]

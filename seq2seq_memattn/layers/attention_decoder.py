"""The loops over decoder steps under teacher forcing."""

from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.layers.attention_cell import AttentionCell, AttentionCellState
from seq2seq_memattn.loops.cell_steps import cell_step, output_units
from seq2seq_memattn.loops.scan import make_steps, scan, scan_cell
from seq2seq_memattn.loops.step_inputs import StepInputs


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
        seed_generator: a `SeedGenerator`.
    """

    def __init__(self, cell: AttentionCell, dropout: float, seed_generator: Any) -> None:
        self.cell = cell
        self.dropout = dropout
        self.seed_generator = seed_generator

    def __call__(
        self,
        inputs: Any,
        lengths: Any,
        memory: Any,
        cell_states: Any,
        training: bool,
    ) -> Decoded:
        """Runs all steps.

        Args:
            inputs: float [batch, target_length, embedding_dim], or `StepInputs`, see `Encoder`.
            lengths: int32 [batch]. Target lengths, end token included.
            memory: record from `attention.prepare`.
            cell_states: for each cell, a list of float [batch, units].
            training: bool. Whether dropout is on and gradients will be asked for.
        """
        given = inputs if isinstance(inputs, StepInputs) else StepInputs(inputs)
        steps = make_steps(lengths, ops.shape(given.values)[1])
        state = self.cell.initial_state(memory, 1, cell_states)
        given = self._drop(given._replace(values=steps.pack(given.values)), training)
        if self._is_parallel(memory, state):
            return Decoded(self._run_parallel(given, steps, memory, state, training))
        return self._run_stepped(given, steps, memory, state, training)

    def _is_parallel(self, memory: Any, state: AttentionCellState) -> bool:
        feeds = self.cell.input_feeding and memory.rows.shape[-1]
        return not feeds and self.cell.read == "after" and not keras.tree.flatten(state.attention)

    def _drop(self, given: StepInputs, training: bool) -> StepInputs:
        if not training or not self.dropout:
            return given
        dropped = keras.random.dropout(given.embedded(), self.dropout, seed=self.seed_generator)
        return StepInputs(dropped)

    def _run_parallel(
        self, given: StepInputs, steps: Any, memory: Any, state: Any, training: bool
    ) -> Any:
        attention = self.cell.attention
        inputs = steps.unpack(given.embedded()) if attention.needs_inputs else None
        for index, states in enumerate(state.cells):
            if index:
                given = self._drop(given, training)
            step = cell_step(self.cell.cells[index], f"cell_{index}", given.width)
            first = [steps.sort(array[:, 0]) for array in states]
            projected = given.project(step, training)
            (outputs,) = scan_cell(step, projected, first, steps, training, outputs_only=True)
            given = StepInputs(outputs)
        queries = steps.unpack(given.values)
        context, _, _ = attention.read(queries, memory, inputs=inputs, training=training)
        return self.cell.mix(queries, context)

    def _run_stepped(
        self, given: StepInputs, steps: Any, memory: Any, state: Any, training: bool
    ) -> Decoded:
        cell = self.cell
        cell_steps = cell.cell_steps(given.width)
        projected = given.project(cell_steps[0], training)
        fed = [given.embedded()] if cell.attention.needs_inputs else []
        memory = keras.tree.map_structure(steps.sort, memory)
        carry = keras.tree.map_structure(steps.sort, state)
        units, context_units = output_units(cell.cells[-1]), memory.rows.shape[-1]
        masks = self._masks(projected, context_units, training)
        has_strength = cell.attention.strength(state.attention) is not None

        def step(products: Any, carry: Any, inputs: Any, crop: Any) -> tuple[Any, list[Any]]:
            projected, *others = inputs
            output, _, carry = cell.step_without_mixing(
                cell_steps,
                products,
                projected,
                keras.tree.map_structure(crop, memory),
                carry,
                num_queries=1,
                masks=others[len(fed) :],
                inputs=ops.expand_dims(others[0], 1) if fed else None,
                training=training,
            )
            found = [ops.squeeze(output, 1), ops.squeeze(carry.context, 1)]
            if has_strength:
                found.append(ops.cast(cell.attention.strength(carry.attention), output.dtype))
            return carry, found

        outputs, contexts, *strengths = scan(
            step,
            carry,
            [projected, *fed, *masks],
            cell.products(cell_steps, memory, training),
            steps,
            [units, context_units, *([1] if has_strength else [])],
            training,
        )
        return Decoded(
            steps.unpack(cell.mix(outputs, contexts)),
            steps.unpack(strengths[0])[:, :, 0] if has_strength else None,
        )

    def _masks(self, projected: Any, context_units: int, training: bool) -> list[Any]:
        """For each cell, the dropout of those inputs that the loop makes, for all steps."""
        if not training or not self.dropout:
            return []
        widths = [context_units if self.cell.input_feeding else 1]
        widths += [output_units(cell) for cell in self.cell.cells[:-1]]
        ones = [ops.ones((ops.shape(projected)[0], width), projected.dtype) for width in widths]
        return [self._drop(StepInputs(each), training).values for each in ones]

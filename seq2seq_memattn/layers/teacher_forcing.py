"""The loops over decoder steps under teacher forcing."""

from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.compute.precision import at_least_float32
from seq2seq_memattn.compute.seeds import seed_states
from seq2seq_memattn.layers.attention_cell import AttentionCell, AttentionCellState
from seq2seq_memattn.loops.cell_steps import cell_step, output_units
from seq2seq_memattn.loops.scan import make_steps, scan, scan_cell
from seq2seq_memattn.loops.step_inputs import StepInputs


class Decoded(NamedTuple):
    """The results of a decoder on known targets.

    Fields:
        outputs: float [batch, target_length, n]. Inputs of the output layer. On padding, 0 if the
            steps run one by one, otherwise unspecified.
        strengths: float [batch, target_length]. `Attention.strength` of every step, 0 on padding;
            None for an attention that has none.
        alignments: float [batch, target_length, source_length]. On padding, 0 if the steps run one
            by one, otherwise unspecified. None if not requested.
        states: for each cell, a list of float [batch, units], after the last real step of each
            target. None if not requested.
        contexts: float [batch, target_length, memory_units]. What each step read from the memory.
            On padding, as for `alignments`. None if not requested.
        scores: float [batch, target_length, rows]. The attention's score for each memory row. On
            padding, as for `alignments`. None if not requested.
    """

    outputs: Any
    strengths: Any = None
    alignments: Any = None
    states: Any = None
    contexts: Any = None
    scores: Any = None


class Asked(NamedTuple):
    """The results requested in addition to the outputs; see `Decoded`."""

    alignments: bool = False
    states: bool = False
    contexts: bool = False
    scores: bool = False  # only for an attention with a fixed number of memory rows


OUTPUTS_ONLY = Asked()


class TeacherForcedDecoder:
    """Runs an `AttentionCell` over known targets.

    With input feeding, every step waits for the context of the previous step. Without input feeding
    (or with a context of width 0), the cells run as plain recurrent layers and the memory is read
    for all steps at once, unless the cell has `read="before"` or the attention keeps a state.

    Args:
        cell: a built `AttentionCell`.
        dropout: float in [0, 1). Dropout rate of each cell's inputs. Each step draws a new mask.
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
        asked: Asked = OUTPUTS_ONLY,
    ) -> Decoded:
        """Runs all steps.

        Args:
            inputs: float [batch, target_length, embedding_dim], or `StepInputs`, see `Encoder`.
            lengths: int32 [batch]. Target lengths, end token included.
            memory: record from `attention.prepare`.
            cell_states: for each cell, a list of float [batch, units].
            training: bool. Whether dropout is on and gradients will be computed.
            asked: the results requested in addition to the outputs.
        """
        given = inputs if isinstance(inputs, StepInputs) else StepInputs(inputs)
        steps = make_steps(lengths, ops.shape(given.values)[1])
        state = self.cell.initial_state(memory, 1, cell_states)
        given = self._drop(given._replace(values=steps.pack(given.values)), training)
        run = self._run_parallel if self._is_parallel(memory) else self._run_stepped
        decoded = run(given, steps, memory, state, training, asked)
        if not asked.states:
            return decoded
        # A target without steps keeps its first states.
        has_steps = lengths[:, None] > 0
        first = [[array[:, 0] for array in states] for states in state.cells]
        states = keras.tree.map_structure(
            lambda last, first: ops.where(has_steps, last, first), decoded.states, first
        )
        return decoded._replace(states=states)

    def _is_parallel(self, memory: Any) -> bool:
        cell = self.cell
        feeds = cell.input_feeding and memory.rows.shape[-1]
        return not feeds and cell.read == "after" and not cell.attention.keeps_state

    def _drop(self, given: StepInputs, training: bool) -> StepInputs:
        if not training or not self.dropout:
            return given
        dropped = keras.random.dropout(given.embedded(), self.dropout, seed=self.seed_generator)
        return StepInputs(dropped)

    def _run_parallel(
        self,
        given: StepInputs,
        steps: Any,
        memory: Any,
        state: AttentionCellState,
        training: bool,
        asked: Asked,
    ) -> Decoded:
        attention, last = self.cell.attention, []
        inputs = steps.unpack(given.embedded()) if attention.needs_inputs else None
        for index, states in enumerate(state.cells):
            if index:
                given = self._drop(given, training)
            step = cell_step(self.cell.cells[index], f"cell_{index}", given.width)
            first = [steps.sort(array[:, 0]) for array in states]
            projected = given.project(step, training)
            outputs, every = scan_cell(step, projected, first, steps, training, asked.states)
            given = StepInputs(outputs)
            last.append([steps.last(states) for states in every])
        queries = steps.unpack(given.values)
        context, scores, _ = attention.read(queries, memory, inputs=inputs, training=training)
        return Decoded(
            self.cell.mix(queries, context),
            alignments=attention.alignment(scores, memory) if asked.alignments else None,
            states=last if asked.states else None,
            contexts=context if asked.contexts else None,
            scores=scores if asked.scores else None,
        )

    def _run_stepped(
        self,
        given: StepInputs,
        steps: Any,
        memory: Any,
        state: AttentionCellState,
        training: bool,
        asked: Asked,
    ) -> Decoded:
        cell = self.cell
        cell_steps = cell.cell_steps(given.width)
        projected = given.project(cell_steps[0], training)
        fed = [given.embedded()] if cell.attention.needs_inputs else []
        memory = keras.tree.map_structure(steps.sort, memory)
        carry = keras.tree.map_structure(steps.sort, state)
        context_units = memory.rows.shape[-1]
        masks = self._masks(projected, context_units, training)
        widths = self._widths_left(context_units, state, asked)
        # The gradient of an array is summed over the steps in the array's dtype.
        wide = keras.tree.map_structure(at_least_float32, memory) if training else memory

        def step(products: Any, carry: Any, inputs: Any, crop: Any) -> tuple[Any, list[Any]]:
            projected, *others = inputs
            cropped = keras.tree.map_structure(
                lambda array, narrow: ops.cast(crop(array), narrow.dtype), wide, memory
            )
            output, scores, carry = cell.step_without_mixing(
                cell_steps,
                products,
                projected,
                cropped,
                carry,
                num_queries=1,
                masks=others[len(fed) :],
                inputs=ops.expand_dims(others[0], 1) if fed else None,
                training=training,
            )
            found = [output, carry.context]
            if "strength" in widths:
                found.append(cell.attention.strength(carry.attention)[:, :, None])
            if asked.alignments:
                found.append(cell.attention.alignment(scores, cropped))
            if asked.scores:
                found.append(scores)
            if asked.states:
                found += keras.tree.flatten(carry.cells)
            return carry, [ops.cast(ops.squeeze(array, 1), output.dtype) for array in found]

        every = scan(
            step,
            carry,
            [projected, *fed, *masks],
            cell.products(cell_steps, memory, training),
            steps,
            list(widths.values()),
            training,
            [*seed_states(cell.attention), *(seed for each in cell_steps for seed in each.seeds())],
        )
        found = dict(zip(widths, every, strict=True))
        mixed = cell.mix(found["output"], found["context"])
        last = [steps.last(array) for name, array in found.items() if name.startswith("state_")]
        return Decoded(
            steps.unpack(mixed),
            steps.unpack(found["strength"])[:, :, 0] if "strength" in found else None,
            steps.unpack(found["alignment"]) if asked.alignments else None,
            keras.tree.pack_sequence_as(state.cells, last) if asked.states else None,
            steps.unpack(found["context"]) if asked.contexts else None,
            steps.unpack(found["scores"]) if asked.scores else None,
        )

    def _widths_left(
        self, context_units: int, state: AttentionCellState, asked: Asked
    ) -> dict[str, int | None]:
        """The results of a step, in order, with their widths."""
        widths: dict[str, int | None] = {
            "output": output_units(self.cell.cells[-1]),
            "context": context_units,
        }
        if self.cell.attention.strength(state.attention) is not None:
            widths["strength"] = 1
        if asked.alignments:
            widths["alignment"] = None  # as long as the source
        if asked.scores:
            widths["scores"] = self.cell.attention.num_rows
        if asked.states:
            for index, array in enumerate(keras.tree.flatten(state.cells)):
                widths[f"state_{index}"] = array.shape[-1]
        return widths

    def _masks(self, projected: Any, context_units: int, training: bool) -> list[Any]:
        """For each cell, the dropout masks for its inputs made inside the loop, for all steps."""
        if not training or not self.dropout:
            return []
        widths = [context_units if self.cell.input_feeding else 1]
        widths += [output_units(cell) for cell in self.cell.cells[:-1]]
        ones = [ops.ones((ops.shape(projected)[0], width), projected.dtype) for width in widths]
        return [self._drop(StepInputs(each), training).values for each in ones]

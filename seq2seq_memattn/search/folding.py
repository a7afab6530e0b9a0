"""Folding: applies linear maps of a context to the memory's rows, once per source.

A context is a weighted sum beta C of the memory's rows C, so mapping it by a matrix W is the same
as mapping the rows first: (beta C) W = beta (C W). The maps of the context into the lowest cell's
gates and into the mixing layer then cost nothing inside the loop over steps. The loop only takes
weighted sums of mapped rows, which are as wide as the outputs of both maps together.
"""

from typing import Any, NamedTuple

from keras import ops

from seq2seq_memattn.layers.attention_cell import AttentionCell
from seq2seq_memattn.loops.cell_steps import CellStep, OpaqueStep, cell_step, output_units
from seq2seq_memattn.loops.products import Products

NUM_STEPS = 30  # assumed for a sentence; the cost of folding is divided among them
LOWEST = "cell_0"  # the lowest cell's name in `AttentionCell.cell_steps`


class Folds(NamedTuple):
    """The maps of the context that can be folded.

    Fields:
        context: float [context_units, gates + mixing_units]. The map into the lowest cell's gates,
            then the map into the mixing layer; each 0 wide if the model does not have it.
        output: float [output_units, mixing_units]. The mixing layer's map of the top cell's output.
    """

    context: Any
    output: Any

    @property
    def gates(self) -> int:
        """Width of the map into the lowest cell's gates."""
        return int(self.context.shape[1] - self.output.shape[1])

    @property
    def has_mixing(self) -> bool:
        """Whether the mixing layer's map of the context is folded."""
        return bool(self.output.shape[1])


class FoldedStep(CellStep):
    """The lowest cell's step, for a context that is already mapped to the gates.

    Args:
        cell: the lowest cell.
        ahead: int > 0. How many of its inputs come before the context.
        context_units: int > 0. How many of its inputs are the context.
        gates: int > 0. Width of the gates. The argument `inside` of `take` may be wider; it is cut
            to this width.
    """

    def __init__(self, cell: Any, ahead: int, context_units: int, gates: int) -> None:
        super().__init__(cell, LOWEST, ahead)
        self._step = cell_step(cell, LOWEST, ahead + context_units)
        self._gates = gates

    def project(self, inputs: Any, training: bool = False) -> Any:
        return cell_step(self.cell, self.name, self.ahead).project(inputs, training)

    def weights(self) -> dict[str, Any]:
        return self._step.weights()

    def take(
        self, products: Products, projected: Any, inside: Any, states: Any
    ) -> tuple[Any, list[Any]]:
        projected = projected + inside[:, : self._gates]
        return self._step.take(products, projected, inside[:, :0], states)


def fold(cell: AttentionCell) -> Folds | None:
    """The maps of a built cell's context, or None if they cannot be folded.

    They cannot be folded if the attention has its own `combine` or the cell its own mixing, if the
    logits read the context without a mixing layer, if the mixing layer is quantised, or if the
    context is fed to a lowest cell other than a standard `LSTMCell` or `GRUCell`.
    """
    reads_context = cell.mixing_from == "output_and_context"
    if not cell.attention.combines_plainly or not cell.mixes_plainly:
        return None
    if reads_context and plain_mixing(cell) is None:
        return None
    lowest, top = cell.cells[0], output_units(cell.cells[-1])
    if cell.input_feeding and isinstance(cell_step(lowest, LOWEST, 0), OpaqueStep):
        return None
    maps = []
    if cell.input_feeding:
        maps.append(ops.cast(lowest.kernel[cell.input_units :], cell.compute_dtype))
    output = ops.zeros((top, 0), dtype=cell.compute_dtype)
    if cell.mixing is not None and reads_context:
        kernel = ops.cast(cell.mixing.kernel, cell.compute_dtype)
        output = kernel[:top]
        maps.append(kernel[top:])
    if not maps or not maps[0].shape[0]:  # a context that is 0 wide
        return None
    return Folds(ops.concatenate(maps, axis=1), output)


def plain_mixing(cell: AttentionCell) -> Any | None:
    """A cell's mixing layer; None without one, if it is quantised, or if the cell mixes otherwise.

    What the layer computes is then computed by `AttentionCell.mix`.
    """
    mixing = cell.mixing
    is_plain = mixing is not None and mixing.quantization_mode is None and cell.mixes_plainly
    return mixing if is_plain else None


def folded_steps(cell: AttentionCell, folds: Folds) -> list[CellStep]:
    """As `AttentionCell.cell_steps`, for contexts already mapped by `folds.context`."""
    steps = cell.cell_steps(cell.input_units)
    if folds.gates:
        units = folds.context.shape[0]
        steps[0] = FoldedStep(cell.cells[0], cell.input_units, units, folds.gates)
    return steps


def folding_pays(folds: Folds, num_rows: int | None, num_queries: int) -> bool:
    """Whether folding saves multiply-adds.

    Args:
        folds: the maps.
        num_rows: int or None. Rows of the memory; None: one per source position, for which
            `NUM_STEPS` is assumed.
        num_queries: int. Hypotheses of each source.
    """
    units, mapped = folds.context.shape
    num_rows = num_rows or NUM_STEPS
    plain = num_rows * units + units * mapped  # combine, then map: per hypothesis and step
    folded = num_rows * mapped
    return folded + num_rows * units * mapped / (num_queries * NUM_STEPS) < plain

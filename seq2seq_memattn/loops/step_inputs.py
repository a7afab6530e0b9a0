"""The inputs of a loop's lowest cells."""

from typing import Any, NamedTuple

from seq2seq_memattn.compute.rows import embed
from seq2seq_memattn.loops.cell_steps import CellStep


class StepInputs(NamedTuple):
    """Inputs of all steps: vectors, or ids of a small vocabulary and a table of their vectors.

    With a table, the lowest cells project each vector once, not for every occurrence of its id.

    Fields:
        values: float [..., n]; with a table int32 [...]. The leading axes are [batch, length],
            or [packed] in the order of a loop.
        table: float [vocab_size, n], or None.
    """

    values: Any
    table: Any = None

    @property
    def width(self) -> int:
        """The width n of an input."""
        return (self.values if self.table is None else self.table).shape[-1]

    def embedded(self) -> Any:
        """The vectors themselves: float [..., n]."""
        return self.values if self.table is None else embed(self.table, self.values)

    def project(self, step: CellStep, training: bool) -> Any:
        """`step.project` of packed inputs; with a table, each of its rows is projected once."""
        if self.table is None:
            return step.project(self.values, training)
        return embed(step.project(self.table, training), self.values)

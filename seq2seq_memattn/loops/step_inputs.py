"""What a loop's lowest cells read."""

from typing import Any, NamedTuple

from seq2seq_memattn.compute.rows import embed
from seq2seq_memattn.loops.cell_steps import CellStep


class StepInputs(NamedTuple):
    """Inputs of all steps, or tokens of a small vocabulary and the input that each stands for.

    With a table, what the lowest cells make of an input is computed once for all places of its
    token.

    Fields:
        values: float [..., n]; with a table int32 [...]. The leading axes are [batch, length],
            or [packed] in the order of a loop.
        table: float [vocab_size, n], or None.
    """

    values: Any
    table: Any = None

    @property
    def width(self) -> int:
        """N."""
        return (self.values if self.table is None else self.table).shape[-1]

    def embedded(self) -> Any:
        """The inputs themselves, of packed values: float [packed, n]."""
        return self.values if self.table is None else embed(self.table, self.values)

    def project(self, step: CellStep, training: bool) -> Any:
        """What `step.project` makes of packed inputs; of a table's rows it is made once each."""
        if self.table is None:
            return step.project(self.values, training)
        return embed(step.project(self.table, training), self.values)

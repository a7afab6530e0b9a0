"""What a loop's lowest cells read."""

from typing import Any, NamedTuple

from seq2seq_memattn.compute.rows import look_up
from seq2seq_memattn.loops.cell_steps import CellStep


class Stream(NamedTuple):
    """Inputs of all steps, or tokens and the table that has the input for each.

    Fields:
        values: float [packed, n]; with a table int32 [packed].
        table: float [vocab_size, n], or None.
    """

    values: Any
    table: Any = None

    @property
    def width(self) -> int:
        """N."""
        return (self.values if self.table is None else self.table).shape[-1]

    def inputs(self) -> Any:
        """Float [packed, n]."""
        return self.values if self.table is None else look_up(self.table, self.values)

    def project(self, step: CellStep, training: bool) -> Any:
        """What `step.project` makes of the inputs; of a table's rows it is made once for each."""
        if self.table is None:
            return step.project(self.values, training)
        return look_up(step.project(self.table, training), self.values)

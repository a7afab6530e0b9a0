"""How many times as large a loss is computed where gradients in float16 would vanish."""

from typing import NamedTuple

FIRST = 2.0**10
SMALLEST = 2.0**-10  # a batch's loss is a sum over its tokens: it may have to be scaled down
LARGEST = 2.0**24
PATIENCE = 2000  # updates without an overflow, after which the scale is doubled


class LossScale(NamedTuple):
    """The scale, halved after an overflow and doubled after `PATIENCE` updates without one.

    Source: Micikevicius et al. (2018), section 3.2, with the scale chosen while training.

    Fields:
        value: float. 1 where nothing is scaled.
        applied: int. Updates in a row that were applied.
        is_on: bool. Whether the scale changes.
    """

    value: float = 1.0
    applied: int = 0
    is_on: bool = False

    @classmethod
    def first(cls, precision: str) -> "LossScale":
        """What a training in some precision begins with."""
        return cls(FIRST, is_on=True) if precision == "mixed_float16" else cls()

    @property
    def may_fall(self) -> bool:
        """Whether an update that was not finite may have had too large a scale."""
        return self.is_on and self.value > SMALLEST

    def after(self, is_applied: bool) -> "LossScale":
        """The scale of the next update."""
        if not self.is_on:
            return self
        if not is_applied:
            return self._replace(value=max(self.value / 2, SMALLEST), applied=0)
        if self.applied + 1 < PATIENCE:
            return self._replace(applied=self.applied + 1)
        return self._replace(value=min(self.value * 2, LARGEST), applied=0)

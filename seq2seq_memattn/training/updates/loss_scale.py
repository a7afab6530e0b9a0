"""Loss scaling: multiplies the loss, because small gradients would underflow in float16."""

from typing import NamedTuple

FIRST = 2.0**10
SMALLEST = 2.0**-10  # the loss of a batch is a sum over tokens, and may need scaling down
LARGEST = 2.0**24
PATIENCE = 2000  # updates without an overflow, after which the scale is doubled


class LossScale(NamedTuple):
    """The loss scale: halved after an overflow, doubled after `PATIENCE` updates without one.

    Source: Micikevicius et al. (2018), section 3.2; the scale adapts during training.

    Fields:
        value: float. The scale; 1 without scaling.
        applied: int. Number of updates applied in a row since the scale was last doubled.
        is_on: bool. Whether the scale adapts.
    """

    value: float = 1.0
    applied: int = 0
    is_on: bool = False

    @classmethod
    def first(cls, precision: str) -> "LossScale":
        """The initial scale for a precision."""
        return cls(FIRST, is_on=True) if precision == "mixed_float16" else cls()

    @property
    def may_fall(self) -> bool:
        """Whether the scale can still be halved after an update that was not finite."""
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

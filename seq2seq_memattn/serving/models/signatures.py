"""What a signature of a SavedModel takes and gives."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

DEFAULT_SIGNATURE = "serving_default"

Arrays = dict[str, np.ndarray]
# Sizes of a tensor's axes, None where any will do; None alone if even their number is not known.
Shape = tuple[int | None, ...] | None


@dataclass(frozen=True)
class TensorSpec:
    """One input or output.

    Args:
        dtype: of NumPy; object for strings.
        shape: with the batch's axis first, if it has one.
    """

    dtype: np.dtype
    shape: Shape

    @property
    def is_text(self) -> bool:
        """Whether its elements are strings."""
        return self.dtype == object

    @property
    def has_rows(self) -> bool:
        """Whether the first axis is a batch of any size."""
        return self.shape is None or (len(self.shape) > 0 and self.shape[0] is None)

    @property
    def rows_are_alike(self) -> bool:
        """Whether every row has the same shape, whatever else is in the batch."""
        return self.has_rows and self.shape is not None and None not in self.shape[1:]


@dataclass(frozen=True)
class Signature:
    """A named function of a SavedModel.

    Args:
        name: such as "serving_default".
        inputs: spec of each input by name.
        outputs: spec of each output by name.
    """

    name: str
    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]

    @property
    def has_rows(self) -> bool:
        """Whether all inputs are batches, of as many rows each."""
        return bool(self.inputs) and all(spec.has_rows for spec in self.inputs.values())

    @property
    def rows_are_separate(self) -> bool:
        """Whether rows of several requests may be computed in one batch.

        Where an output has another axis of any size, such as the alignments' source_length, a row's
        answer would be padded to its neighbours' size.
        """
        return self.has_rows and all(spec.rows_are_alike for spec in self.outputs.values())

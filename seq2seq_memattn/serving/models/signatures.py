"""The signatures of a SavedModel: names, dtypes and shapes of inputs and outputs."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

DEFAULT_SIGNATURE = "serving_default"

Arrays = dict[str, np.ndarray]
# Sizes of a tensor's axes; None for an axis of any size; None alone for an unknown rank.
Shape = tuple[int | None, ...] | None


@dataclass(frozen=True)
class TensorSpec:
    """The dtype and shape of one input or output.

    Args:
        dtype: NumPy dtype; object for strings.
        shape: shape of the tensor, with the batch axis first if it has one.
    """

    dtype: np.dtype
    shape: Shape

    @property
    def is_text(self) -> bool:
        """Whether the elements are strings."""
        return self.dtype == object

    @property
    def has_rows(self) -> bool:
        """Whether the first axis is a batch of any size."""
        return self.shape is None or (len(self.shape) > 0 and self.shape[0] is None)

    @property
    def rows_are_alike(self) -> bool:
        """Whether the shape of a row is the same in every batch."""
        return self.has_rows and self.shape is not None and None not in self.shape[1:]


@dataclass(frozen=True)
class Signature:
    """A named function of a SavedModel.

    Args:
        name: name of the signature, such as "serving_default".
        inputs: spec of each input by name.
        outputs: spec of each output by name.
    """

    name: str
    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]

    @property
    def has_rows(self) -> bool:
        """Whether all inputs are batches."""
        return bool(self.inputs) and all(spec.has_rows for spec in self.inputs.values())

    @property
    def rows_are_separate(self) -> bool:
        """Whether rows of several requests may be computed in one batch.

        If an output has an axis of variable size besides the batch axis, such as source_length of
        the alignments, its rows are padded to the longest row of the batch, and are not separate.
        """
        return self.has_rows and all(spec.rows_are_alike for spec in self.outputs.values())

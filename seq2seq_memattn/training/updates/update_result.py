"""What an update tells of itself, on every backend."""

from typing import NamedTuple


class UpdateResult(NamedTuple):
    """Figures of one update.

    Fields:
        loss: float. Nats per target token, with the label smoothing of the training.
        num_tokens: float. Target tokens of the batch, end tokens included.
        gradient_norm: float. Before clipping.
        is_applied: bool. False if loss or gradient was NaN or infinite.
    """

    loss: float
    num_tokens: float
    gradient_norm: float
    is_applied: bool

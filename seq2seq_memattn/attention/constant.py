"""Constant attention, the classic encoder-decoder: one vector for the whole source."""

from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.attention.base import Attention, source_mask
from seq2seq_memattn.compute.rows import batch_gather


class ConstantMemory(NamedTuple):
    """A source summarised in one row.

    Fields:
        rows: float [batch, 1, encoder_units]. The encoder's last output in each direction.
        origin: float [batch, source_length]. How much each source position contributes to the row.
    """

    rows: Any
    origin: Any


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class ConstantAttention(Attention):
    """Constant attention (Cho et al., 2014): gives every step the encoder's last state.

    Source: Cho et al. (2014); the baseline of Bahdanau et al. (2014), section 2.1:
        c = h_S.
    Symbols: c -> memory.rows[:, 0].

    Args:
        is_bidirectional: bool. Whether the encoder's outputs have a forward and a backward half.
            The last state of the backward half is at the first real position.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Masking: padding may be anywhere and is never read. The row of an empty source is 0.

    Example:
    >>> from keras import ops
    >>> from seq2seq_memattn import ConstantAttention
    >>> attention = ConstantAttention()
    >>> memory = attention.prepare(ops.zeros([2, 9, 8]))
    >>> context, scores, _ = attention.read(ops.zeros([2, 3, 6]), memory)
    >>> tuple(context.shape), tuple(scores.shape)
    ((2, 3, 8), (2, 3, 1))
    """

    def __init__(self, is_bidirectional: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.is_bidirectional = is_bidirectional

    @property
    def num_rows(self) -> int:
        return 1

    def prepare(self, encoder_outputs: Any, mask: Any = None) -> ConstantMemory:
        mask = source_mask(encoder_outputs, mask)
        outputs = self._cast(encoder_outputs)
        positions = ops.arange(ops.shape(outputs)[1], dtype="int32")
        last = ops.max(ops.where(mask, positions, 0), axis=1, keepdims=True, initial=0)
        row, origin = self._output_at(last, outputs, mask)
        if self.is_bidirectional:
            first = ops.cast(ops.argmax(ops.cast(mask, "int32"), axis=1, keepdims=True), "int32")
            back, other = self._output_at(first, outputs, mask)
            half = outputs.shape[-1] // 2
            row = ops.concatenate([row[:, :, :half], back[:, :, half:]], axis=-1)
            origin = (origin + other) / 2
        return ConstantMemory(rows=row, origin=origin)

    def _output_at(self, index: Any, outputs: Any, mask: Any) -> tuple[Any, Any]:
        """The output at `index` [batch, 1], and this position as one-hot; both 0 on padding."""
        positions = ops.arange(ops.shape(mask)[1], dtype="int32")
        is_here = ops.logical_and(mask, positions == index)
        row, is_real = batch_gather(outputs, index), ops.any(is_here, axis=1)[:, None, None]
        return ops.where(is_real, row, ops.zeros_like(row)), ops.cast(is_here, self.compute_dtype)

    def score(
        self, queries: Any, memory: Any, state: Any = (), inputs: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        return ops.ones_like(self._cast(queries)[:, :, :1]), state

    def without_sources(self, memory: Any) -> ConstantMemory:
        return memory._replace(origin=memory.origin[:, :0])

    def alignment(self, scores: Any, memory: Any) -> Any:
        """How much each source position contributes to the row, the same for every query."""
        return scores * memory.origin[:, None, :]

    def positions_scored(self, scores: Any, memory: Any) -> Any:
        return ops.zeros_like(scores[:, :, 0], dtype="float32")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "is_bidirectional": self.is_bidirectional}

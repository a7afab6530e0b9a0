"""No attention: the decoder knows the source only through its first state."""

from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.attention.base import Attention, source_mask


class NoMemory(NamedTuple):
    """An empty memory.

    Fields:
        rows: float [batch, 0, 0].
        mask: bool [batch, source_length]. Gives the (zero) alignment its width.
    """

    rows: Any
    mask: Any


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class NoAttention(Attention):
    """No attention: reads nothing and returns a context of width 0.

    Source: the "No Att" rows of Britz, Guan and Luong (2017), Table 1.

    Args:
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Example:
    >>> from keras import ops
    >>> from seq2seq_memattn import NoAttention
    >>> attention = NoAttention()
    >>> memory = attention.prepare(ops.zeros([2, 9, 8]))
    >>> context, scores, _ = attention.read(ops.zeros([2, 3, 6]), memory)
    >>> tuple(context.shape), tuple(scores.shape)
    ((2, 3, 0), (2, 3, 0))
    """

    has_shares = False

    @property
    def num_rows(self) -> int:
        return 0

    def prepare(self, encoder_outputs: Any, mask: Any = None) -> NoMemory:
        mask = source_mask(encoder_outputs, mask)
        return NoMemory(rows=self._cast(encoder_outputs)[:, :0, :0], mask=mask)

    def score(
        self, queries: Any, memory: Any, state: Any = (), inputs: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        return self._cast(queries)[:, :, :0], state

    def without_sources(self, memory: Any) -> NoMemory:
        return memory._replace(mask=memory.mask[:, :0])

    def alignment(self, scores: Any, memory: Any) -> Any:
        real = ops.cast(memory.mask, self.compute_dtype)
        queries = ops.sum(scores, axis=-1, keepdims=True)  # [batch, queries, 1], all 0
        return queries * real[:, None, :]

    def positions_scored(self, scores: Any, memory: Any) -> Any:
        return ops.sum(ops.cast(scores, "float32"), axis=-1)

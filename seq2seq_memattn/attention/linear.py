"""Linear attention: a memory of fixed size, the sum of outer products."""

from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.attention.base import Attention, source_mask
from seq2seq_memattn.checks import check_int


class LinearMemory(NamedTuple):
    """A source summarised in a covariance matrix.

    Fields:
        rows: float [batch, units, units]. The covariance C.
        keys: float [batch, source_length, units]. The projected encoder outputs, 0 on padding.
    """

    rows: Any
    keys: Any


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class LinearAttention(Attention):
    """Linear attention (de Brebisson and Vincent, 2016): multiplies the query by a covariance.

    Source: de Brebisson and Vincent (2016), section 3: attention without softmax,
        C = sum_s h_s h_s^T,  c = C q.
    Symbols: h_s -> memory.keys[:, s], C -> memory.rows, q -> scores[:, i].
    Differs from the paper: encoder outputs and query, which may differ in width here, are first
    projected to `units`, without bias.

    Args:
        units: int > 0. Width of the projections, D. The memory is D x D.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Normalisation: none; the context grows with the length of the source.
    Masking: padding adds nothing.

    Raises:
        ValueError: if `units` is not positive.

    Example:
    >>> from keras import ops
    >>> from seq2seq_memattn import LinearAttention
    >>> attention = LinearAttention(units=5)
    >>> memory = attention.prepare(ops.zeros([2, 9, 8]))
    >>> context, scores, _ = attention.read(ops.zeros([2, 3, 6]), memory)
    >>> tuple(context.shape), tuple(scores.shape)
    ((2, 3, 5), (2, 3, 5))
    """

    has_shares = False

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        units = check_int("units", units)
        self.units = units
        self.key_projection = self.dense(units, "key", use_bias=False)
        self.query_projection = self.dense(units, "query", use_bias=False)

    @property
    def num_rows(self) -> int:
        return self.units

    def prepare(self, encoder_outputs: Any, mask: Any = None) -> LinearMemory:
        mask = source_mask(encoder_outputs, mask)
        keys = self.key_projection(self._cast(encoder_outputs))
        keys = ops.where(mask[:, :, None], keys, ops.zeros_like(keys))
        return LinearMemory(rows=ops.matmul(ops.swapaxes(keys, 1, 2), keys), keys=keys)

    def score(
        self, queries: Any, memory: Any, state: Any = (), inputs: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        return self.query_projection(self._cast(queries)), state

    def without_sources(self, memory: Any) -> LinearMemory:
        return memory._replace(keys=memory.keys[:, :0])

    def alignment(self, scores: Any, memory: Any) -> Any:
        """The weight q . h_s that each position has in C q; of any sign."""
        return ops.matmul(scores, ops.swapaxes(memory.keys, 1, 2))

    def positions_scored(self, scores: Any, memory: Any) -> Any:
        return ops.zeros_like(scores[:, :, 0], dtype="float32")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}

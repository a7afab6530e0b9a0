"""Attention with a multiplicative score, after Luong et al."""

from typing import Any, Literal

import keras
from keras import ops

from seq2seq_memattn.attention.base import Attention, SourceMemory, masked_softmax, source_mask


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class KeyProjection(keras.layers.Layer):
    """A matrix product; without `units`, as wide as its input."""

    def __init__(self, units: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.units = units
        self.kernel_initializer = keras.initializers.get("glorot_uniform")

    def build(self, input_shape: Any) -> None:
        width = input_shape[-1]
        self.kernel = self.add_weight(
            (width, self.units or width), self.kernel_initializer, name="kernel"
        )
        self.built = True

    def call(self, inputs: Any) -> Any:
        return ops.matmul(inputs, self.kernel)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class LuongAttention(Attention):
    """Compares each query with every encoder output through a dot product.

    Source: Luong et al. (2015), section 3.1; equation 2 of Britz, Guan and Luong (2017).
        dot: h . s    general: h . (W s)
    Symbols: h -> queries[:, i], s or W s -> memory.keys, alpha -> scores.

    Args:
        score: "dot" or "general".
        units: int > 0 or None. Width of the queries, which "general" projects the encoder's
            outputs to; None: that of the encoder's outputs. "dot" takes none.

    Normalisation: scores sum to 1 over the real source positions.
    Masking: padding gets score 0 exactly.

    Raises:
        ValueError: for an unknown score, `units` with "dot", or queries whose width is not
            that of the keys (both are named).

    Example:
    >>> attention = LuongAttention(score="general", units=6)
    >>> memory = attention.prepare(ops.zeros([2, 9, 8]))
    >>> context, scores, _ = attention.read(ops.zeros([2, 3, 6]), memory)
    >>> tuple(context.shape), tuple(scores.shape)
    ((2, 3, 8), (2, 3, 9))
    """

    def __init__(
        self,
        score: Literal["dot", "general"] = "dot",
        units: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if score not in ("dot", "general"):
            raise ValueError(f"`score` must be 'dot' or 'general'; got {score!r}.")
        if score == "dot" and units is not None:
            raise ValueError(f"`units` is for the general score alone; got {units} with 'dot'.")
        if units is not None and units < 1:
            raise ValueError(f"`units` must be positive; got {units}.")
        self.score_name = score
        self.units = units
        self.key_projection = (
            KeyProjection(units, dtype=self.dtype_policy, name=f"{self.name}_key")
            if score == "general"
            else None
        )

    def prepare(self, encoder_outputs: Any, mask: Any = None) -> SourceMemory:
        mask = source_mask(encoder_outputs, mask)
        rows = self._cast(encoder_outputs)
        keys = self.key_projection(rows) if self.key_projection else rows
        return SourceMemory(rows=rows, keys=keys, mask=mask)

    def score(
        self, queries: Any, memory: Any, state: Any = (), inputs: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        query_units, key_units = queries.shape[-1], memory.keys.shape[-1]
        if query_units != key_units:
            raise ValueError(
                f"The {self.score_name} score needs queries as wide as its keys; got queries of "
                f"{query_units} and keys of {key_units} units. {self._remedy(query_units)}"
            )
        energies = ops.matmul(self._cast(queries), ops.swapaxes(memory.keys, 1, 2))
        return masked_softmax(energies, memory.mask[:, None, :]), state

    def _remedy(self, query_units: int) -> str:
        if self.score_name == "dot":
            return f"Project the encoder outputs (encoder_projection_units={query_units})."
        return f"Set units={query_units}."

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "score": self.score_name, "units": self.units}

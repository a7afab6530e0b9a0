"""Luong's global attention: scores from a product, a hidden layer, or the query alone."""

from typing import Any, Literal, get_args

import keras
from keras import ops

from seq2seq_memattn.attention.additive import additive_energies, energy_layer, energy_vector
from seq2seq_memattn.attention.base import Attention, SourceMemory, masked_softmax, source_mask
from seq2seq_memattn.checks import check_choice, check_int
from seq2seq_memattn.compute.padding import padding_last
from seq2seq_memattn.compute.private import unwrapped
from seq2seq_memattn.compute.rows import on_rows

Score = Literal["dot", "general", "concat", "location"]


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class KeyProjection(keras.layers.Layer):
    """A projection to `units` without a bias; if `units` is None, to the width of the input."""

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
        return on_rows(lambda rows: ops.matmul(rows, self.kernel), inputs)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class LuongAttention(Attention):
    """Luong attention (Luong et al., 2015): scores positions by encoder output or by index.

    Source: Luong et al. (2015), section 3.1, equations 7 and 8; equation 2 of Britz, Guan and Luong
    (2017); concat is also equation 3 of Shu and Nakayama (2017).
        dot: h . s    general: h . (W s)    concat: v . tanh(W [h; s])    location: (W h)_s
    Symbols: h -> queries[:, i]; s (dot), W s (general) or the part of W [h; s] that comes from s
        (concat) -> memory.keys; alpha -> scores.

    Args:
        score: "dot", "general", "concat" or "location".
        units: int > 0 or None. "general": width of the queries, to which the encoder's outputs are
            projected; None: the width of the encoder's outputs. "concat": width of the hidden
            layer. The other scores take no `units`.
        max_source_length: int > 0 or None. Longest source in tokens; required by "location" and
            not taken by the other scores. Later positions get score 0.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Normalisation: scores sum to 1 over the real source positions.
    Masking: padding gets score 0 exactly. For "location" it must come last, which compiled code
        (XLA, JAX) does not check.

    Raises:
        ValueError: if the score is unknown, an argument is missing or is not for this score, or the
            queries are not as wide as the keys (the message names both widths).

    Example:
    >>> from keras import ops
    >>> from seq2seq_memattn import LuongAttention
    >>> attention = LuongAttention(score="general", units=6)
    >>> memory = attention.prepare(ops.zeros([2, 9, 8]))
    >>> context, scores, _ = attention.read(ops.zeros([2, 3, 6]), memory)
    >>> tuple(context.shape), tuple(scores.shape)
    ((2, 3, 8), (2, 3, 9))
    """

    def __init__(
        self,
        score: Score = "dot",
        units: int | None = None,
        max_source_length: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if isinstance(score, int):
            raise ValueError(
                f"`score`: expected a name; got {score}. TensorFlow Addons' "
                "LuongAttention(units) is LuongAttention('general', units) here."
            )
        check_choice("score", score, get_args(Score))
        if units is not None and score not in ("general", "concat"):
            raise ValueError(f"`units` is for general and concat; got {units} with {score!r}.")
        if units is not None or score == "concat":
            units = check_int("units", units)
        if score == "location":
            max_source_length = check_int("max_source_length", max_source_length)
        elif max_source_length is not None:
            raise ValueError(
                f"`max_source_length` is for location; got {max_source_length} with {score!r}."
            )
        self.score_name = score
        self.units = units
        self.max_source_length = max_source_length
        self.key_projection = self._projection("key") if score in ("general", "concat") else None
        self.query_projection = self._projection("query") if score == "concat" else None
        self.energy = energy_layer(self) if score == "concat" else None
        self.location = (
            self.dense(max_source_length, "location", use_bias=False) if max_source_length else None
        )

    def _projection(self, name: str) -> KeyProjection:
        return KeyProjection(
            self.units,
            dtype=self.dtype_policy,
            trainable=self.trainable,
            name=f"{self.name}_{name}",
        )

    @property
    def _maps_outputs(self) -> bool:  # type: ignore[override]
        return self.location is None

    @property
    def longest_source(self) -> int | None:
        return self.max_source_length

    def prepare(self, encoder_outputs: Any, mask: Any = None) -> SourceMemory:
        mask = source_mask(encoder_outputs, mask)
        rows = self._cast(encoder_outputs)
        keys = self.key_projection(rows) if self.key_projection else rows
        if self.location is not None:
            keys, mask = rows[:, :, :0], padding_last("mask", mask)
            positions = ops.arange(ops.shape(rows)[1], dtype="int32")
            mask = ops.logical_and(mask, positions < self.location.units)
        return SourceMemory(rows=rows, keys=keys, mask=mask)

    def score(
        self, queries: Any, memory: Any, state: Any = (), inputs: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        energies = self.energies(self._cast(queries), memory.keys)
        return masked_softmax(energies, memory.mask[:, None, :]), state

    def energies(self, queries: Any, keys: Any) -> Any:
        """The energies: values before the softmax.

        Args:
            queries: float [batch, queries, query_units].
            keys: float [batch, source_length, key_units], or [batch, queries, positions, key_units]
                if each query has its own positions (not for "location").

        Returns:
            float [batch, queries, source_length], or [batch, queries, positions].
        """
        if self.location is not None:
            energies, length = self.location(queries), ops.shape(keys)[1]
            beyond = ops.zeros((*ops.shape(queries)[:2], length), dtype=energies.dtype)
            return ops.concatenate([energies, beyond], axis=-1)[:, :, :length]
        if self.query_projection is not None and self.energy is not None:
            vector = energy_vector(self.energy, keys.shape[-1])
            return additive_energies(keys, self.query_projection(queries), vector)
        query_units, key_units = queries.shape[-1], keys.shape[-1]
        if query_units != key_units:
            message = (
                f"`queries`: expected {key_units} units, the width of the keys of the "
                f"{self.score_name} score; got {query_units}. {self._remedy(query_units)}"
            )
            raise unwrapped(ValueError(message))
        if len(keys.shape) == 4:
            return ops.sum(keys * queries[:, :, None], axis=-1)
        return ops.matmul(queries, ops.swapaxes(keys, 1, 2))

    def _remedy(self, query_units: int) -> str:
        if self.score_name == "dot":
            return (
                f"Use the score 'general' with units={query_units}, or project the encoder outputs "
                f"to {query_units} units (`encoder_projection_units` in a `ModelConfig`)."
            )
        return f"Set units={query_units}."

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "score": self.score_name,
            "units": self.units,
            "max_source_length": self.max_source_length,
        }

"""Bahdanau attention: an additive score with one hidden layer."""

from typing import Any

import keras
from keras import ops

from seq2seq_memattn.attention.base import Attention, SourceMemory, masked_softmax, source_mask
from seq2seq_memattn.checks import check_int
from seq2seq_memattn.compute.backend import is_compiled_for_cpu


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class BahdanauAttention(Attention):
    """Bahdanau attention (Bahdanau et al., 2014): scores outputs with a hidden tanh layer.

    Source: Bahdanau et al. (2014), as computed in google/seq2seq, `decoders/attention.py`:
        energy = sum(v * tanh(W_k s + b_k + W_q h + b_q)).
    Symbols: s -> encoder_outputs[:, t], W_k s + b_k -> memory.keys[:, t], h -> queries[:, i],
        alpha -> scores.
    Differs from Bahdanau et al.: there are two biases, and the cell chooses which state is the
    query.

    Args:
        units: int > 0. Width of the hidden layer.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Normalisation: scores sum to 1 over the real source positions.
    Masking: padding gets score 0 exactly.

    Raises:
        ValueError: if `units` is not positive.

    Example:
    >>> from keras import ops
    >>> from seq2seq_memattn import BahdanauAttention
    >>> attention = BahdanauAttention(units=5)
    >>> memory = attention.prepare(ops.zeros([2, 9, 8]))
    >>> context, scores, _ = attention.read(ops.zeros([2, 3, 6]), memory)
    >>> tuple(context.shape), tuple(scores.shape)
    ((2, 3, 8), (2, 3, 9))
    """

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        units = check_int("units", units)
        self.units = units
        self.key_projection = self.dense(units, "key")
        self.query_projection = self.dense(units, "query")
        self.energy = energy_layer(self)

    def prepare(self, encoder_outputs: Any, mask: Any = None) -> SourceMemory:
        mask = source_mask(encoder_outputs, mask)
        rows = self._cast(encoder_outputs)
        return SourceMemory(rows=rows, keys=self.key_projection(rows), mask=mask)

    def score(
        self, queries: Any, memory: Any, state: Any = (), inputs: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        projected = self.query_projection(self._cast(queries))
        energies = additive_energies(memory.keys, projected, energy_vector(self.energy, self.units))
        return masked_softmax(energies, memory.mask[:, None, :]), state

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


def energy_layer(attention: Any) -> keras.layers.Dense:
    """The layer whose kernel is v, initialised within +-sqrt(3 / units) as in google/seq2seq."""
    vector = keras.initializers.VarianceScaling(1.0, "fan_in", "uniform")
    return attention.dense(1, "energy", use_bias=False, kernel_initializer=vector)


def energy_vector(layer: keras.layers.Dense, units: int) -> Any:
    """v, float [units], in the layer's dtype."""
    if not layer.built:
        layer.build((None, units))
    return ops.cast(layer.kernel, layer.compute_dtype)[:, 0]


def additive_energies(keys: Any, queries: Any, vector: Any) -> Any:
    """Additive energies: sum(vector * tanh(keys + queries)) over the last axis.

    The gradient recomputes the hidden layer instead of keeping it, unless each query has its own
    keys.

    Args:
        keys: float [batch, source_length, units], or [batch, queries, source_length, units] if each
            query has its own keys.
        queries: float [batch, queries, units].
        vector: float [units].

    Returns:
        float [batch, queries, source_length].
    """
    if len(keys.shape) == 4:
        return _project(ops.tanh(keys + queries[:, :, None]), vector)
    return _additive_energies(keys, queries, vector)


def _project(hidden: Any, vector: Any) -> Any:
    """sum(vector * hidden) over the last axis, as a matrix product: XLA's own sum here is slow."""
    return ops.matmul(hidden, vector[:, None])[..., 0]


@ops.custom_gradient
def _additive_energies(keys: Any, queries: Any, vector: Any) -> tuple[Any, Any]:
    def hidden_layer() -> Any:  # [batch, queries, source_length, units]
        return ops.tanh(keys[:, None] + queries[:, :, None])

    def gradient(*upstream: Any) -> tuple[Any, Any, Any]:
        # Computes the hidden layer again: keeping it for every decoder step would cost
        # source_length * units floats per target token.
        hidden = hidden_layer()
        d_energies = upstream[-1][..., None]
        d_vector = ops.sum(hidden * d_energies, axis=(0, 1, 2))
        d_hidden = (1.0 - hidden * hidden) * d_energies * vector
        return ops.sum(d_hidden, axis=1), ops.sum(d_hidden, axis=2), d_vector

    if is_compiled_for_cpu() and keras.backend.standardize_dtype(keys.dtype) == "float32":
        return _by_exponentials(keys, queries, vector), gradient
    return _project(hidden_layer(), vector), gradient


LARGEST = 1e9  # largest e^2x: from there on, tanh(x) is 1 in float32
STEEPEST = 43.0  # largest |x| whose e^2x and e^-2x are finite and not 0 in float32


def _by_exponentials(keys: Any, queries: Any, vector: Any) -> Any:
    """The energies, from tanh(k + q) = 1 - 2 / (1 + e^2k e^2q).

    The exponentials of the keys are the same at every step, so XLA takes them out of the loop. A
    step then needs a few multiplications, and one division for every four units, because
        a / b + c / d = (a d + b c) / (b d).
    This takes a sixth of the time of tanh. `LARGEST` keeps the product of four denominators finite.
    Keys and queries are clipped to `STEEPEST`, so a unit's tanh is wrong if one is beyond it
    and the other is nearly as large with the opposite sign; trained models stay far below.
    """
    missing = -keys.shape[-1] % 4
    if missing:
        keys, queries = (ops.pad(x, [(0, 0), (0, 0), (0, missing)]) for x in (keys, queries))
        vector = ops.pad(vector, [(0, missing)])
    keys, queries = _squared_exponentials(keys)[:, None], _squared_exponentials(queries)[:, :, None]
    shares = [
        (v, 1 + ops.minimum(k * q, LARGEST))
        for k, q, v in zip(
            *(ops.split(x, 4, axis=-1) for x in (keys, queries, vector)), strict=True
        )
    ]
    while len(shares) > 1:
        shares = [
            (a * d + b * c, b * d) for (a, b), (c, d) in zip(shares[::2], shares[1::2], strict=True)
        ]
    numerator, denominator = shares[0]
    summed = _project(numerator / denominator, ops.ones(vector.shape[0] // 4, "float32"))
    return ops.sum(vector) - 2 * summed


def _squared_exponentials(x: Any) -> Any:
    return ops.exp(2 * ops.clip(x, -STEEPEST, STEEPEST))

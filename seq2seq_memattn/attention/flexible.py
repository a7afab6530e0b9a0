"""Flexible Attention of Shu and Nakayama: a window whose width the model chooses at each step."""

import math
from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.attention.base import SourceMemory, masked_softmax, source_lengths, source_mask
from seq2seq_memattn.attention.multiplicative import LuongAttention
from seq2seq_memattn.attention.windows import (
    MaskedScores,
    WindowedAttention,
    WindowScores,
    gather_positions,
)
from seq2seq_memattn.checks import check_int, check_state
from seq2seq_memattn.compute.backend import has_static_shapes
from seq2seq_memattn.compute.padding import padding_last

LEAST_STRENGTH = 1e-6  # keeps the window finite where g is 0


class FlexibleState(NamedTuple):
    """The state of flexible attention between steps.

    Fields:
        focus: float32 [batch, queries]. p, the mean position that the last step read; 0 at first.
        strength: float32 [batch, queries]. g of the last step; 0 at first.
    """

    focus: Any
    strength: Any


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class FlexibleAttention(WindowedAttention):
    """Flexible attention (Shu and Nakayama, 2017): penalises positions far from the last focus.

    Source: Shu and Nakayama (2017), equations 3 to 8 and section 3.1.
        p_t = sum_s alpha_t(s) s                                  (4)
        penalty(s) = g (s - p_{t-1})^2 / (2 sigma^2)              (5, 6)
        alpha_t = softmax_s(v . tanh(W [h; s]) - penalty(s))      (3, 7)
        g = sigmoid(v_g . tanh(W_g [h; i]) + b_g)                 (8)
    With a threshold tau, and if `training` is false, only the positions with penalty(s) < tau are
    scored: those less than sigma sqrt(2 tau / g) away from p_{t-1}.
    Symbols: h -> queries[:, i], i -> inputs, alpha -> scores, p -> state.focus,
    g -> state.strength.
    Our choices where the paper is silent: positions are counted from 0, and p_0 is 0; the position
    nearest to p_{t-1} is always scored; p_t is the mean over the scored positions.

    Args:
        units: int > 0. Width of the hidden layers of the score and of g.
        sigma: float > 0. Width of the penalty, in positions.
        threshold: float > 0 or None. tau; None: every position is scored.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Normalisation: scores sum to 1 over the positions that are scored.
    Masking: padding gets score 0 exactly; it must come last, which compiled code (XLA, JAX) does
        not check.
    Cost: with a threshold, outside training, TensorFlow without XLA scores windows as wide as the
    widest of the batch. XLA and JAX, whose shapes are fixed, score all positions, with the same
    result.

    Raises:
        ValueError: if an argument is out of range, or `inputs` or the state is missing.

    Example:
    >>> from keras import ops
    >>> from seq2seq_memattn import FlexibleAttention
    >>> attention = FlexibleAttention(units=5)
    >>> memory = attention.prepare(ops.zeros([2, 9, 8]))
    >>> state, inputs = attention.initial_state(memory, num_queries=3), ops.zeros([2, 3, 4])
    >>> context, scores, state = attention.read(ops.zeros([2, 3, 6]), memory, state, inputs)
    >>> tuple(context.shape), tuple(scores.shape)
    ((2, 3, 8), (2, 3, 9))
    """

    needs_inputs = True

    def __init__(
        self, units: int, sigma: float = 1.5, threshold: float | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        units = check_int("units", units)
        if not sigma > 0:
            raise ValueError(f"`sigma` must be positive; got {sigma}.")
        if threshold is not None and not threshold > 0:
            raise ValueError(f"`threshold` must be positive; got {threshold}.")
        self.units = units
        self.sigma = sigma
        self.threshold = threshold
        self.content = LuongAttention(
            "concat",
            units,
            dtype=self.dtype_policy,
            trainable=self.trainable,
            name=f"{self.name}_content",
        )
        self.strength_hidden = self.dense(
            units, "strength_hidden", activation="tanh", use_bias=False
        )
        self.strength_energy = self.dense(1, "strength_energy")

    def prepare(self, encoder_outputs: Any, mask: Any = None) -> SourceMemory:
        mask = padding_last("mask", source_mask(encoder_outputs, mask))
        return self.content.prepare(encoder_outputs, mask)

    def initial_state(self, memory: Any, num_queries: int) -> FlexibleState:
        zeros = ops.zeros((ops.shape(memory.mask)[0], num_queries), dtype=self.wide_dtype)
        return FlexibleState(focus=zeros, strength=zeros)

    def score(
        self, queries: Any, memory: Any, state: Any = (), inputs: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        if inputs is None:
            raise ValueError("FlexibleAttention needs `inputs`, the embeddings fed back; got None.")
        check_state(state, FlexibleState)
        queries = self._cast(queries)
        focus = ops.cast(FlexibleState(*state).focus, self.wide_dtype)
        strength = self._strength(queries, self._cast(inputs))
        if self.threshold is None or training:
            return self._score_all(queries, memory, focus, strength, math.inf)
        if has_static_shapes():
            return self._score_all(queries, memory, focus, strength, self.threshold)
        return self._score_window(queries, memory, focus, strength, self.threshold)

    def _strength(self, queries: Any, inputs: Any) -> Any:
        """Equation 8: [batch, queries]."""
        hidden = self.strength_hidden(ops.concatenate([queries, inputs], axis=-1))
        energy = self.strength_energy(hidden)[:, :, 0]
        return ops.sigmoid(ops.cast(energy, self.wide_dtype))

    def _score_all(
        self, queries: Any, memory: Any, focus: Any, strength: Any, threshold: float
    ) -> tuple[Any, FlexibleState]:
        """Scores every position; with a finite threshold, masks positions outside the window."""
        energies = self.content.energies(queries, memory.keys)
        positions = ops.arange(ops.shape(memory.mask)[1], dtype=self.wide_dtype)
        is_real = memory.mask[:, None, :]
        if threshold == math.inf:
            return self._weigh(energies, positions, is_real, focus, strength)
        low, high = self._window(memory, focus, strength, threshold)
        in_window = ops.logical_and(positions >= low[:, :, None], positions <= high[:, :, None])
        is_inside = ops.logical_and(is_real, in_window)
        weights, state = self._weigh(energies, positions, is_inside, focus, strength)
        return MaskedScores(weights, is_inside), state

    def _score_window(
        self, queries: Any, memory: Any, focus: Any, strength: Any, threshold: float
    ) -> tuple[WindowScores, FlexibleState]:
        """Scores only the positions of the window."""
        low, high = self._window(memory, focus, strength, threshold)
        width = ops.cast(ops.max(high - low, initial=0), "int32") + 1
        wanted = low[:, :, None] + ops.arange(width, dtype=self.wide_dtype)
        is_inside = wanted <= high[:, :, None]
        # A source without tokens ends at -1.
        positions = ops.maximum(ops.cast(ops.minimum(wanted, high[:, :, None]), "int32"), 0)
        energies = self.content.energies(queries, gather_positions(memory.keys, positions))
        weights, state = self._weigh(energies, wanted, is_inside, focus, strength)
        return WindowScores(weights, positions, is_inside), state

    def _window(self, memory: Any, focus: Any, strength: Any, threshold: float) -> tuple[Any, Any]:
        """First and last position of each query's window: two arrays [batch, queries]."""
        last = source_lengths(memory.mask, self.wide_dtype) - 1
        half = self.sigma * ops.sqrt(2 * threshold / ops.maximum(strength, LEAST_STRENGTH))
        nearest = ops.minimum(ops.round(focus), last)
        low = ops.clip(ops.floor(focus - half) + 1, 0, nearest)
        high = ops.maximum(ops.minimum(ops.ceil(focus + half) - 1, last), nearest)
        return low, high

    def _weigh(
        self, energies: Any, positions: Any, is_inside: Any, focus: Any, strength: Any
    ) -> tuple[Any, FlexibleState]:
        """Equations 4 to 7."""
        away = ops.square(positions - focus[:, :, None])
        penalty = strength[:, :, None] * away / (2 * self.sigma**2)
        weights = masked_softmax(ops.cast(energies, self.wide_dtype) - penalty, is_inside)
        focus = ops.sum(weights * positions, axis=-1)
        return self._cast(weights), FlexibleState(focus=focus, strength=strength)

    def strength(self, state: Any) -> Any:
        return FlexibleState(*state).strength

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "units": self.units,
            "sigma": self.sigma,
            "threshold": self.threshold,
        }

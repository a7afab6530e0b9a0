"""Local attention of Luong et al.: a window of fixed width."""

from typing import Any, Literal, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.attention.base import SourceMemory, masked_softmax, source_lengths, source_mask
from seq2seq_memattn.attention.multiplicative import LuongAttention
from seq2seq_memattn.attention.windows import WindowedAttention, WindowScores, gather_positions
from seq2seq_memattn.checks import check_choice, check_int, check_state
from seq2seq_memattn.compute.padding import padding_last

CENTRES = ("monotonic", "predictive")


class LocalState(NamedTuple):
    """The state of monotonic windows between steps.

    Fields:
        step: float32 [batch, queries]. Steps taken.
    """

    step: Any


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class LocalAttention(WindowedAttention):
    """Local attention (Luong et al., 2015): scores positions at most `half_window` from a centre.

    Source: Luong et al. (2015), section 3.2; equations 10 and 11 of Shu and Nakayama (2017).
        local-m ("monotonic"): p_t = t, alpha(s) = w(s)
        local-p ("predictive"): p_t = S sigmoid(v_p . tanh(W_p h)),
            alpha(s) = w(s) * exp(-(s - p_t)^2 / (2 sigma^2))
        w = softmax of the energies of the window around p_t
    Symbols: h -> queries[:, i], t -> the number of the step, p_t -> the window's centre,
        S -> the number of real positions in the source, alpha -> scores.
    Our choices where the papers are silent: positions and steps are counted from 0; the softmax
    runs over the window, not over all positions; centres are clamped to the last real position.

    Args:
        half_window: int > 0. D: a window has at most 2 D + 1 positions.
        units: int > 0. Width of the score's hidden layer (concat) or of the queries (general), and
            of the hidden layer that predicts centres.
        centre: "monotonic" or "predictive".
        score: "concat", "general" or "dot". See `LuongAttention`.
        sigma: float > 0 or None. Standard deviation in positions, for "predictive"; None: D / 2.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Normalisation: monotonic scores sum to 1; predictive scores sum to less, as published.
    Masking: padding gets score 0 exactly; it must come last, which compiled code (XLA, JAX) does
        not check.
    Cost: in training, all positions are scored, and those outside the window are then masked;
    otherwise, only the positions of the window are scored.

    Raises:
        ValueError: if an argument is out of range, or the state is missing.

    Example:
    >>> from keras import ops
    >>> from seq2seq_memattn import LocalAttention
    >>> attention = LocalAttention(half_window=2, units=5)
    >>> memory = attention.prepare(ops.zeros([2, 9, 8]))
    >>> state = attention.initial_state(memory, num_queries=3)
    >>> context, scores, state = attention.read(ops.zeros([2, 3, 6]), memory, state)
    >>> tuple(context.shape), tuple(scores.weights.shape)
    ((2, 3, 8), (2, 3, 5))
    """

    def __init__(
        self,
        half_window: int,
        units: int,
        centre: Literal["monotonic", "predictive"] = "monotonic",
        score: Literal["concat", "general", "dot"] = "concat",
        sigma: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("centre", centre, CENTRES)
        check_choice("score", score, ("concat", "general", "dot"))
        half_window = check_int("half_window", half_window)
        units = check_int("units", units)
        if sigma is not None and centre == "monotonic":
            raise ValueError(f"`sigma` is for predictive centres; the centre is {centre}.")
        if sigma is not None and not sigma > 0:
            raise ValueError(f"`sigma` must be positive; got {sigma}.")
        self.half_window = half_window
        self.units = units
        self.centre = centre
        self.score_name = score
        self.sigma = sigma
        self.content = LuongAttention(
            score,
            None if score == "dot" else units,
            dtype=self.dtype_policy,
            trainable=self.trainable,
            name=f"{self.name}_content",
        )
        self.centre_hidden = self.centre_energy = None
        if centre == "predictive":
            self.centre_hidden = self.dense(
                units, "centre_hidden", activation="tanh", use_bias=False
            )
            self.centre_energy = self.dense(1, "centre_energy", use_bias=False)

    def prepare(self, encoder_outputs: Any, mask: Any = None) -> SourceMemory:
        mask = padding_last("mask", source_mask(encoder_outputs, mask))
        return self.content.prepare(encoder_outputs, mask)

    @property
    def keeps_state(self) -> bool:
        return self.centre == "monotonic"

    def initial_state(self, memory: Any, num_queries: int) -> Any:
        if not self.keeps_state:
            return ()
        batch = ops.shape(memory.mask)[0]
        return LocalState(step=ops.zeros((batch, num_queries), dtype="float32"))

    def score(
        self, queries: Any, memory: Any, state: Any = (), inputs: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        queries = self._cast(queries)
        lengths = source_lengths(memory.mask, self.wide_dtype)
        if self.centre_hidden is not None and self.centre_energy is not None:
            energy = self.centre_energy(self.centre_hidden(queries))[:, :, 0]
            centre = lengths * ops.sigmoid(ops.cast(energy, self.wide_dtype))
        else:
            check_state(state, LocalState)
            (step,) = state
            centre, state = ops.cast(step, self.wide_dtype), LocalState(step=step + 1)
        centre = ops.minimum(centre, lengths - 1)
        if training:
            return self._score_all(queries, memory, centre), state
        return self._score_window(queries, memory, centre), state

    def _score_all(self, queries: Any, memory: Any, centre: Any) -> Any:
        energies = self.content.energies(queries, memory.keys)
        positions = ops.arange(ops.shape(memory.mask)[1], dtype=self.wide_dtype)
        away = positions - centre[:, :, None]
        is_inside = ops.logical_and(memory.mask[:, None, :], ops.abs(away) <= self.half_window)
        return self._weights(energies, is_inside, away)

    def _score_window(self, queries: Any, memory: Any, centre: Any) -> WindowScores:
        lowest = ops.ceil(centre - self.half_window)
        window = ops.arange(2 * self.half_window + 1, dtype=self.wide_dtype)
        wanted = lowest[:, :, None] + window
        last = source_lengths(memory.mask, self.wide_dtype)[:, :, None] - 1
        away = wanted - centre[:, :, None]
        in_source = ops.logical_and(wanted >= 0, wanted <= last)
        is_inside = ops.logical_and(in_source, ops.abs(away) <= self.half_window)
        positions = ops.cast(ops.clip(wanted, 0, last), "int32")
        energies = self.content.energies(queries, gather_positions(memory.keys, positions))
        return WindowScores(self._weights(energies, is_inside, away), positions, is_inside)

    def _weights(self, energies: Any, is_inside: Any, away: Any) -> Any:
        weights = masked_softmax(energies, is_inside)
        if self.centre == "monotonic":
            return weights
        sigma = self.sigma or self.half_window / 2
        return weights * self._cast(ops.exp(-ops.square(away) / (2 * sigma**2)))

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "half_window": self.half_window,
            "units": self.units,
            "centre": self.centre,
            "score": self.score_name,
            "sigma": self.sigma,
        }

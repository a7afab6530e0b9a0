"""K-memory attention, the subject of this project: it reads a fixed number of context vectors."""

from typing import Any, Literal, NamedTuple, get_args

import keras
from keras import ops

from seq2seq_memattn.attention.base import Attention, masked_softmax, softmax, source_mask
from seq2seq_memattn.attention.position_encoding import PositionEncoding, position_encoding
from seq2seq_memattn.checks import check_choice, check_int, check_number
from seq2seq_memattn.compute.padding import no_longer_than, padding_last

Score = Literal["softmax", "sigmoid"]


class KMemory(NamedTuple):
    """A source summarised in K rows.

    Fields:
        rows: float [batch, num_slots, memory_units]. C in the paper.
        alpha: float [batch, source_length, num_slots]. Encoder scores; 0 on padding.
    """

    rows: Any
    alpha: Any


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class KMemoryAttention(Attention):
    """K-memory attention (Britz et al., 2017): reads K context vectors, computed once per source.

    The K vectors are weighted sums of the encoder's outputs, computed before decoding starts. The
    cost of one decoder step therefore depends on K and not on the source length.

    Source: Britz, Guan and Luong (2017), section 3, equations 4 to 10.
        alpha_t = softmax(W_alpha s_t)  (5)
        C_k = sum_t alpha_tk s_t        (4)
        beta = softmax(W_beta h)        (7)
        c = sum_k beta_k C_k            (6)
    Symbols: C -> memory.rows, K -> num_slots, alpha -> memory.alpha, beta -> scores,
        s_t -> encoder_outputs[:, t], h -> queries[:, i], c -> context.
    Differs from the paper: as printed, the softmax of eq. 5 is over the slots at each position
        (`normalise_over="slots"`). Here, the softmax is by default over the source for each slot,
        so each slot is a weighted average of the source (see results/ambiguities.md). Biases are
        an option.

    Args:
        num_slots: int > 0. Number of context vectors (K in the paper).
        encoder_score: "softmax" or "sigmoid"; turns encoder energies into alpha.
        decoder_score: "softmax" or "sigmoid"; turns decoder energies into beta.
        normalise_over: axis of a softmax in eq. 5. "time": each slot's weights sum to 1 over the
            source. "slots", as printed: each position's weights sum to 1 over the slots. No effect
            with a sigmoid, which is not normalised.
        position_encoding: None, "masked", "sum_to_one" or "mean_one". Unless None, the encoder
            energies are multiplied by the position encodings of eq. 10, which are 0 beyond each
            sentence. The paper also renormalises the encodings, but does not say to which sum:
            "sum_to_one" divides them by their sum over the sentence, "mean_one" divides them by
            their mean, and "masked" leaves them as they are.
        max_source_length: int > 0 or None. S of eq. 10, in tokens, end token included; needed
            with position encodings.
        use_bias: bool. Whether to add biases in eq. 5 and eq. 7, which are printed without them.
        hidden_units: int > 0 or None. Units of a tanh layer, with biases, between s_t and eq. 5, so
            that a slot can depend on content and position together: energies = W tanh(V s + b).
        spread: float > 0 or None. Gain of an orthogonal initialisation of the weights of eq. 5,
            so that slots already differ before training; None: Glorot initialisation.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Call arguments of `read`:
        queries: float [batch, queries, query_units]. Decoder outputs.
        memory: record from `prepare`; rows is [batch, num_slots, memory_units].

    Returns of `read`:
        context: float [batch, queries, memory_units].
        scores: float [batch, queries, num_slots]. Sum to 1 over slots under softmax.
        state: (); this attention keeps none.

    Normalisation: alpha over slots at each source position ("slots") or over the source for
        each slot ("time"); beta over slots.
    Masking: `prepare` takes a bool mask [batch, source_length], true on real tokens. Padding gets
        alpha = 0 exactly and never changes a result. With position encodings, padding must come
        last, and sources have at most `max_source_length` tokens. Compiled code (XLA, JAX) does not
        check either; its results for other sources have no meaning.

    Raises:
        ValueError: if `num_slots` or `hidden_units` is not an int above 0, `spread` is not a number
            above 0, a name is unknown, or position encodings lack `max_source_length`.

    Example:
    >>> from keras import ops
    >>> from seq2seq_memattn import KMemoryAttention
    >>> attention = KMemoryAttention(num_slots=4)
    >>> memory = attention.prepare(ops.zeros([2, 9, 8]))
    >>> context, scores, _ = attention.read(ops.zeros([2, 3, 6]), memory)
    >>> tuple(context.shape), tuple(scores.shape)
    ((2, 3, 8), (2, 3, 4))

    As a layer, for queries that are all known:

    >>> tuple(attention([ops.zeros([2, 3, 6]), ops.zeros([2, 9, 8])]).shape)
    (2, 3, 8)
    """

    def __init__(
        self,
        num_slots: int,
        encoder_score: Score = "softmax",
        decoder_score: Score = "softmax",
        normalise_over: Literal["slots", "time"] = "time",
        position_encoding: PositionEncoding | None = None,
        max_source_length: int | None = None,
        use_bias: bool = False,
        hidden_units: int | None = None,
        spread: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        num_slots = check_int("num_slots", num_slots)
        if hidden_units is not None:
            hidden_units = check_int("hidden_units", hidden_units)
        if spread is not None:
            check_number("spread", spread)
            if spread <= 0:
                raise ValueError(f"`spread` must be positive; got {spread}.")
        check_choice("encoder_score", encoder_score, get_args(Score))
        check_choice("decoder_score", decoder_score, get_args(Score))
        check_choice("normalise_over", normalise_over, ("slots", "time"))
        if position_encoding is not None:
            check_choice("position_encoding", position_encoding, get_args(PositionEncoding))
            if max_source_length is None:
                raise ValueError(
                    "Position encodings need `max_source_length`, the longest source of the "
                    "corpus in tokens; got None."
                )
        if max_source_length is not None:
            max_source_length = check_int("max_source_length", max_source_length)
        self.num_slots = num_slots
        self.encoder_score = encoder_score
        self.decoder_score = decoder_score
        self.normalise_over = normalise_over
        self.position_encoding = position_encoding
        self.max_source_length = max_source_length
        self.use_bias = use_bias
        self.hidden_units, self.spread = hidden_units, spread
        # Only two softmaxes, over the source and over the slots, give shares of the source.
        self.has_shares = normalise_over == "time" and encoder_score == decoder_score == "softmax"
        start = _Spread(spread) if spread else "glorot_uniform"
        self.encoder_hidden = (
            self.dense(hidden_units, "encoder_hidden", activation="tanh") if hidden_units else None
        )
        self.encoder_energy = self.dense(
            num_slots, "encoder_energy", use_bias=use_bias, kernel_initializer=start
        )
        self.decoder_energy = self.dense(num_slots, "decoder_energy", use_bias=use_bias)

    @property
    def num_rows(self) -> int:
        return self.num_slots

    @property
    def longest_source(self) -> int | None:
        return self.max_source_length if self.position_encoding else None

    def prepare(self, encoder_outputs: Any, mask: Any = None) -> KMemory:
        mask = source_mask(encoder_outputs, mask)
        if self.longest_source is not None:
            mask = no_longer_than("mask", padding_last("mask", mask), mask, self.longest_source)
        encoder_outputs = self._cast(encoder_outputs)
        scored = self.encoder_hidden(encoder_outputs) if self.encoder_hidden else encoder_outputs
        alpha = self._alpha(self.encoder_energy(scored), mask)
        rows = ops.matmul(ops.swapaxes(alpha, 1, 2), encoder_outputs)  # eq. 4, eq. 8
        return KMemory(rows=rows, alpha=alpha)

    def _alpha(self, energies: Any, mask: Any) -> Any:
        """Equations 5 and 9: [batch, source_length, num_slots], 0 on padding."""
        if self.position_encoding and self.max_source_length:
            encoding = position_encoding(
                self.num_slots,
                self.max_source_length,
                mask,
                self.position_encoding,
                self.wide_dtype,
            )
            energies = energies * self._cast(encoding)
        real = mask[:, :, None]
        if self.encoder_score == "softmax" and self.normalise_over == "time":
            return masked_softmax(energies, real, axis=1)
        score = softmax if self.encoder_score == "softmax" else ops.sigmoid
        alpha = score(energies)
        return ops.where(real, alpha, ops.zeros_like(alpha))

    def score(
        self, queries: Any, memory: Any, state: Any = (), inputs: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        energies = self.decoder_energy(self._cast(queries))
        score = softmax if self.decoder_score == "softmax" else ops.sigmoid
        return score(energies), state  # eq. 7

    def without_sources(self, memory: Any) -> KMemory:
        return memory._replace(alpha=memory.alpha[:, :0])

    def alignment(self, scores: Any, memory: Any) -> Any:
        """Section 5: the product of beta and alpha, summed over slots."""
        return ops.matmul(scores, ops.swapaxes(memory.alpha, 1, 2))

    def positions_scored(self, scores: Any, memory: Any) -> Any:
        return ops.zeros_like(scores[:, :, 0], dtype="float32")

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_slots": self.num_slots,
            "encoder_score": self.encoder_score,
            "decoder_score": self.decoder_score,
            "normalise_over": self.normalise_over,
            "position_encoding": self.position_encoding,
            "max_source_length": self.max_source_length,
            "use_bias": self.use_bias,
            "hidden_units": self.hidden_units,
            "spread": self.spread,
        }


class _Spread(keras.initializers.Orthogonal):
    """Orthogonal initialiser for any dtype.

    Its decomposition does not work in dtypes narrower than float32, so it is computed in float32
    and the result is cast.
    """

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        return ops.cast(super().__call__(shape, "float32"), dtype or keras.backend.floatx())

"""Base of all attentions: prepares memory rows once per source; steps score and combine them."""

import abc
from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.checks import check_mask, check_rank, check_size
from seq2seq_memattn.compute.padding import full_mask
from seq2seq_memattn.compute.precision import at_least_float32
from seq2seq_memattn.compute.private import attached_mask, layers_inside
from seq2seq_memattn.compute.rows import on_rows


class SourceMemory(NamedTuple):
    """Memory of an attention that scores the encoder's outputs themselves.

    Fields:
        rows: float [batch, source_length, encoder_units]. The encoder's outputs.
        keys: float [batch, source_length, units]. What the queries are compared with.
        mask: bool [batch, source_length]. True on real tokens.
    """

    rows: Any
    keys: Any
    mask: Any


class Attention(keras.layers.Layer, abc.ABC):
    """Base of all attentions: prepares a memory once per source, which decoder steps read.

    A new attention implements `prepare` and `score`; the other methods have defaults. The page
    "Adding an attention" of the documentation has an example. The memory is a record (a NamedTuple
    of arrays, batch first). `prepare` returns it and the other methods take it as an argument: it
    is never stored on the layer and never tiled over queries. The queries are those of all steps of
    a target, of all hypotheses of a beam, or of a single step.

    Masks may have padding anywhere. An attention that counts positions from the start of the source
    needs padding last, and checks it in `prepare`, as `LocalAttention` does.

    All weights are in sublayers. `__init__` makes the sublayers, and their names begin with this
    layer's name. A sublayer is built when it is first called.

    An attention that keeps no state from step to step and does not need the inputs that are fed
    back can also be called on all queries at once, like `keras.layers.AdditiveAttention`. Unlike
    Keras's attentions, it takes exactly two inputs and has no `use_causal_mask` and no dropout.

    Args:
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Call arguments:
        inputs: list of two arrays. The queries, float [batch, queries, query_units], and the
            encoder's outputs, float [batch, source_length, encoder_units].
        mask: list of two masks, bool [batch, queries] and [batch, source_length]; either may be
            None. None instead of the list: the masks that Keras attached to the inputs, if any.
        training: bool.
        return_attention_scores: bool. Whether to return the scores as well.

    Returns:
        context: float [batch, queries, memory_units], 0 where the queries are masked.
        scores: float [batch, queries, rows], as from `read`. For an attention with a window
            (predictive `LocalAttention`), one per source position, 0 outside the window.

    Raises:
        ValueError: if an argument has a wrong shape, or the attention keeps a state or needs the
            inputs that are fed back.
    """

    needs_inputs = False
    """Whether `score` reads `inputs` (embeddings). If not, decoder loops do not look them up."""

    has_shares = True
    """Whether alignments are non-negative shares of the source, as a coverage penalty requires."""

    _maps_outputs = True  # whether a weight's shape depends on the width of the encoder outputs

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("autocast", False)  # positions and masks keep their own dtypes
        super().__init__(**kwargs)
        self._widths: tuple[int | None, int | None] = (None, None)  # of queries, encoder outputs
        self.built = True

    def build(self, *shapes: Any) -> None:
        del shapes  # a sublayer is built when it is first called
        self.built = True

    def get_build_config(self) -> dict[str, Any]:
        inner = layers_inside(self, deep=False)
        return {"sublayers": [layer.get_build_config() for layer in inner]}

    def build_from_config(self, config: dict[str, Any]) -> None:
        inner = layers_inside(self, deep=False)
        for layer, its_config in zip(inner, config["sublayers"], strict=True):
            if its_config:
                layer.build_from_config(its_config)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Attention":
        attention = cls(**config)  # Keras's own method would keep only the name of the dtype policy
        attention.built = False  # or Keras would not build the sublayers of a copy
        return attention

    @property
    def num_rows(self) -> int | None:
        """Number of memory rows; None if there is one for each source position."""
        return None

    @property
    def longest_source(self) -> int | None:
        """The maximum number of source positions that the attention can read; None: no limit."""
        return None

    @property
    def keeps_state(self) -> bool:
        """Whether the attention keeps a state from step to step, so steps must run one by one."""
        return type(self).initial_state is not Attention.initial_state

    @property
    def combines_plainly(self) -> bool:
        """Whether `combine` is the plain weighted sum.

        If so, linear maps of the rows can be combined in place of the rows.
        """
        return type(self).combine is Attention.combine

    @property
    def wide_dtype(self) -> str:
        """The dtype of positions and of values computed from them: float32 at least."""
        return "float64" if self.compute_dtype == "float64" else "float32"

    def dense(self, units: int, name: str, **kwargs: Any) -> keras.layers.Dense:
        """A dense layer for `__init__`: float [..., n] to float [..., units].

        It has this layer's dtype policy and `trainable`, and its name begins with this layer's. XLA
        can train it inside a decoder's loop, unlike a plain `keras.layers.Dense` on inputs of three
        axes.

        Args:
            units: int > 0. Width of the output.
            name: the second part of its name.
            **kwargs: as for `keras.layers.Dense`.
        """
        own = {"dtype": self.dtype_policy, "trainable": self.trainable}
        return _DenseOnRows(units, name=f"{self.name}_{name}", **{**own, **kwargs})

    def _cast(self, x: Any) -> Any:
        return ops.cast(x, self.compute_dtype)

    @abc.abstractmethod
    def prepare(self, encoder_outputs: Any, mask: Any = None) -> Any:
        """Prepares the memory that steps read, once per source.

        Args:
            encoder_outputs: float [batch, source_length, encoder_units].
            mask: bool [batch, source_length], true on real tokens. None: the mask that Keras
                attached to `encoder_outputs`; without one, all tokens are real.

        Returns:
            A record whose leaves are arrays, batch first. Its `rows` are
            [batch, rows, memory_units]. The default `positions_scored` also needs the record to
            have a field `mask`, bool [batch, source_length].
        """

    @abc.abstractmethod
    def score(
        self, queries: Any, memory: Any, state: Any = (), inputs: Any = None, training: bool = False
    ) -> tuple[Any, Any]:
        """Scores the rows for each query.

        Args:
            queries: float [batch, queries, query_units].
            memory: record from `prepare`.
            state: what `initial_state` or the previous step returned.
            inputs: float [batch, queries, embedding_dim]. Embeddings of the tokens fed back at this
                step, for attentions with `needs_inputs`; None for others.
            training: bool.

        Returns:
            scores: float [batch, queries, rows], of any dtype: they are cast to that of the rows.
                Or a record of arrays, which only the attention's own methods read.
            state: with the structure of `initial_state`.
        """

    def initial_state(self, memory: Any, num_queries: int) -> Any:
        """The state before the first step; empty by default."""
        del memory, num_queries
        return ()

    def combine(self, scores: Any, rows: Any) -> Any:
        """Weighted sums of rows.

        Args:
            scores: float [batch, queries, rows].
            rows: float [batch, rows, n]. `memory.rows` or any linear map of them.

        Returns:
            float [batch, queries, n].
        """
        return ops.matmul(scores, rows)

    def without_sources(self, memory: Any) -> Any:
        """The memory without the arrays of source length that only `alignment` reads.

        By default, there are no such arrays.
        """
        return memory

    def alignment(self, scores: Any, memory: Any) -> Any:
        """How much each query read from each position: float [batch, queries, source_length].

        By default, the scores themselves.
        """
        del memory
        return scores

    def strength(self, state: Any) -> Any:
        """Strength of the penalty (flexible attention) at the step that returned `state`.

        Returns:
            float [batch, queries]; None for other attentions.
        """
        del state
        return None

    def positions_scored(self, scores: Any, memory: Any) -> Any:
        """Number of encoder states scored for each query: float32 [batch, queries].

        By default, all real positions of `memory.mask`.
        """
        lengths = source_lengths(memory.mask, "float32")
        return lengths * ops.ones_like(scores[:, :, 0], dtype="float32")

    def read(
        self, queries: Any, memory: Any, state: Any = (), inputs: Any = None, training: bool = False
    ) -> tuple[Any, Any, Any]:
        """Scores the rows and combines them into a context.

        Returns:
            context: float [batch, queries, memory_units].
            scores: float [batch, queries, rows], or a record, see `score`.
            state: with the structure of `initial_state`.
        """
        check_rank("queries", queries, ("batch", "queries", "units"))
        scores, state = self.score(queries, memory, state, inputs, training)
        scores = scores_in(scores, self.compute_dtype)
        return self.combine(scores, memory.rows), scores, state

    def __call__(self, inputs: Any, mask: Any = None, **kwargs: Any) -> Any:
        # Checked here, not in `call`: Keras adds a list of all arguments to an error of `call`.
        _check_pair("inputs", inputs)
        names = ("queries", "encoder_outputs")
        for name, x, units in zip(names, inputs, self._widths, strict=True):
            check_rank(name, x, ("batch", "length", "units"))
            check_size(name, "units", x.shape[-1], units)
        check_size("encoder_outputs", "batch", inputs[1].shape[0], inputs[0].shape[0])
        if mask is not None:
            _check_pair("mask", mask)
            for name, one, x in zip(names, mask, inputs, strict=True):
                check_mask(f"mask of {name}", one, x)
        if self.keeps_state or self.needs_inputs:
            raise ValueError(
                f"{type(self).__name__} keeps a state from step to step, or reads what is fed "
                "back: run it in an AttentionDecoder."
            )
        found = super().__call__(inputs, mask=mask, **kwargs)
        if self.weights:  # their shapes fit only these widths
            outputs_width = inputs[1].shape[-1] if self._maps_outputs else None
            self._widths = (inputs[0].shape[-1], outputs_width)
        return found

    def call(
        self,
        inputs: Any,
        mask: Any = None,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> Any:
        queries, outputs = inputs
        queries_mask, outputs_mask = mask or (None, None)
        memory = self.prepare(outputs, full_mask(outputs, outputs_mask))
        context, scores, _ = self.read(queries, memory, training=training)
        if queries_mask is not None:
            context *= ops.cast(queries_mask, context.dtype)[:, :, None]
        if not return_attention_scores:
            return context
        return context, scores if ops.is_tensor(scores) else self.alignment(scores, memory)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        del inputs
        return None if previous_mask is None else previous_mask[0]


def scores_in(scores: Any, dtype: str) -> Any:
    """Scores in a dtype, since a softmax is often computed in a wider one; a record stays."""
    return scores if keras.tree.is_nested(scores) else ops.cast(scores, dtype)


def _check_pair(name: str, value: Any) -> None:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        got = len(value) if isinstance(value, (list, tuple)) else type(value).__name__
        raise ValueError(
            f"`{name}`: expected a list of two, for the queries and the encoder's outputs; "
            f"got {got}."
        )


class _DenseOnRows(keras.layers.Dense):
    """`keras.layers.Dense` with a product that XLA can differentiate inside a loop over steps.

    The product runs on flattened rows; the bias is added to the result in its original shape. When
    the bias was added to the flattened rows, XLA ordered the queries of additive energies
    differently, and decoding a single sentence took 9 % longer.
    """

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        del training
        x = on_rows(lambda rows: ops.matmul(rows, self.kernel), inputs)
        if self.bias is not None:
            x = ops.add(x, self.bias)
        return x if self.activation is None else self.activation(x)


def source_mask(encoder_outputs: Any, mask: Any) -> Any:
    """The mask given, else the mask that Keras attached to `encoder_outputs`, else all true."""
    check_rank("encoder_outputs", encoder_outputs, ("batch", "source_length", "units"))
    if mask is None:
        mask = attached_mask(encoder_outputs)
    check_mask("mask", mask, encoder_outputs)
    return full_mask(encoder_outputs, mask)


def source_lengths(mask: Any, dtype: str) -> Any:
    """Number of real positions of each source: [batch, 1]."""
    return ops.sum(ops.cast(mask, dtype), axis=1, keepdims=True)


def masked_softmax(energies: Any, mask: Any, axis: int = -1) -> Any:
    """Softmax over the true positions of `mask`; exactly 0 elsewhere, whatever the energies.

    Args:
        energies: float, any shape. The softmax is computed in float32 at least.
        mask: bool, broadcastable to `energies`.
        axis: int. The axis that sums to 1.
    """
    dtype, energies = energies.dtype, at_least_float32(energies)
    lowest = -1e30  # far below any energy, still finite in float32
    energies = ops.where(mask, energies, ops.cast(lowest, energies.dtype))
    scores = softmax(energies, axis=axis)
    return ops.cast(ops.where(mask, scores, ops.zeros_like(scores)), dtype)


def softmax(energies: Any, axis: int = -1) -> Any:
    """`ops.softmax` without its warning for an axis with one entry (K = 1, one-token sources)."""
    if energies.shape[axis] == 1:
        return ops.exp(energies - energies)  # 1, with a gradient, which is 0
    return ops.softmax(energies, axis=axis)

"""`Searchable`: makes other Keras models searchable."""

import bisect
import contextlib
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import keras
import numpy as np
from keras import ops

from seq2seq_memattn.checks import check_int, check_mask, check_rank, check_size
from seq2seq_memattn.compute.backend import has_static_shapes, is_eager
from seq2seq_memattn.compute.ids import has_ids
from seq2seq_memattn.compute.padding import full_mask
from seq2seq_memattn.compute.precision import at_least_float32
from seq2seq_memattn.compute.private import (
    EMBEDDINGS,
    attached_mask,
    embeddings_of_input,
    layers_inside,
)
from seq2seq_memattn.layers.attention_decoder import AttentionDecoder
from seq2seq_memattn.search.functional_parts import parts_of
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID


def refuse_copy(model: Any, protocol: Any) -> NoReturn:
    """Refuses to copy or pickle: parts that share a layer would get separate copies of it."""
    del protocol
    raise TypeError(
        f"a `{type(model).__name__}` cannot be copied or pickled. Copy the Keras models, and make "
        f"a new `{type(model).__name__}` from the copies."
    )


class Searchable:
    """Makes your own trained model searchable: `beam_search(Searchable(...), source)`.

    The four parts are the layers that a search runs to generate a target. They are not copied, so
    you may go on training their weights. They may also be layers of a loaded model (`get_layer`),
    or quantised (`quantize`).

    `Searchable.from_model(model)` finds the parts of a functional model.

    Args:
        encode: a Keras layer or model. Maps source ids, int32 [batch, source_length], or features,
            such as images or speech, to encoder outputs, float [batch, source_length,
            encoder_units], or to a list of the outputs, the decoder's first states and a mask. The
            states (optional) are float [batch, units], as separate entries or in one list, as for
            `initial_state` of `AttentionDecoder`. The mask (optional) is bool [batch,
            source_length]; by default the mask that Keras attached to the outputs, or else
            `source != pad_id` (ids), or all true (features). A source has features if it has more
            than two axes. With two axes, it has features if it has no whole numbers and `encode` is
            a functional or sequential model whose `keras.Input` has floats that no
            `keras.layers.Embedding` reads. Source ids are checked where their values can be seen
            (NumPy, eager mode, plain graphs), if a functional or sequential `encode` passes them to
            a `keras.layers.Embedding`.
        embedding: a Keras layer. The target's embedding. It must map each id independently.
        decoder: an `AttentionDecoder` that has been called.
        logits: a Keras layer. Maps the decoder's outputs to logits, float
            [batch, length, vocab_size].
        start_id, end_id, pad_id: int. Ids of the start token, the end token and padding of a
            target. They may be equal. Search never writes the start token or padding, unless that
            id also ends the target. `pad_id` pads sources of ids, too.

    Raises:
        ValueError: if a part has a wrong type, has not been called, or does not fit the others;
            if `logits` ends with a softmax.

    Example:
    >>> import keras
    >>> from seq2seq_memattn import AttentionDecoder, KMemoryAttention, Searchable, greedy_search
    >>> source, target = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    >>> embed = keras.layers.Embedding(9, 4, mask_zero=True)
    >>> encoded = keras.layers.GRU(5, return_sequences=True)(embed(source))
    >>> decoder = AttentionDecoder(keras.layers.GRUCell(6), KMemoryAttention(3))
    >>> to_logits = keras.layers.Dense(9)
    >>> model = keras.Model([source, target], to_logits(decoder(embed(target), encoded)))
    >>> searchable = Searchable.from_model(model)
    >>> encode = keras.Model(source, encoded)
    >>> searchable = Searchable(encode, embed, decoder, to_logits)  # the same
    >>> tuple(greedy_search(searchable, [[3, 4, 5], [6, 0, 0]], max_length=7).tokens.shape)
    (2, 7)
    """

    __reduce_ex__ = refuse_copy

    def __init__(
        self,
        encode: Any,
        embedding: Any,
        decoder: AttentionDecoder,
        logits: Any,
        start_id: int = START_ID,
        end_id: int = END_ID,
        pad_id: int = PAD_ID,
    ) -> None:
        parts = {"encode": encode, "embedding": embedding, "decoder": decoder, "logits": logits}
        for name, part in parts.items():
            # A compiled search cannot find the weights of a plain function.
            kind = AttentionDecoder if name == "decoder" else keras.layers.Layer
            if not isinstance(part, kind):
                wanted = "an AttentionDecoder" if name == "decoder" else "a Keras layer or model"
                raise ValueError(f"`{name}`: expected {wanted}; got {type(part).__name__}.")
            if not part.built:
                raise ValueError(f"`{name}`: expected a layer that has been called; it has not.")
        self.encoder, self.embedding, self.decoder, self.logits = parts.values()
        self.cell = decoder.cell
        check_size("logits", "input width", _input_units(logits), self.cell.output_units)
        self.vocab_size = _vocab_size(logits, self.cell)
        self.pad_id = pad_id
        sizes = [embedding.input_dim for embedding in embeddings_of_input(encode)]
        self.source_vocab_size = min(sizes, default=None)
        self.source_input = _input_of(encode)
        for name, value in (("start_id", start_id), ("end_id", end_id), ("pad_id", pad_id)):
            check_int(name, value, 0, self.vocab_size - 1)
        if type(embedding) in EMBEDDINGS:
            check_size("embedding", "ids", embedding.input_dim, self.vocab_size)
        embedded = embedding.compute_output_spec(keras.KerasTensor((1, 1), "int32"))
        check_size("embedding", "width", embedded.shape[-1], self.cell.input_units)
        # `ids[n]` is the id of search's token n: padding, start, end, then all others.
        special = (pad_id, start_id, end_id)
        others = [index for index in range(self.vocab_size) if index not in special]
        self.ids = np.array([*special, *others], np.int32)
        self._is_in_order = np.array_equal(self.ids, np.arange(self.vocab_size))
        # An id with several roles counts only in the last of these: padding, then start, then end.
        self._counts = np.ones(len(self.ids), bool)
        self._counts[:2] = pad_id not in (start_id, end_id), start_id != end_id

    @classmethod
    def from_model(
        cls,
        model: keras.Model,
        start_id: int = START_ID,
        end_id: int = END_ID,
        pad_id: int = PAD_ID,
    ) -> "Searchable":
        """Finds the parts of a functional model, which may be a loaded one.

        The encoder, the first states and the mask are those of the decoder's call, so search reads
        what the decoder reads in training, including padding if the encoder outputs have no mask.

        Args:
            model: a functional model with inputs for the source and the target's ids, one
                `AttentionDecoder`, called once, and one output computed from the decoder's
                outputs: the logits. Other layers that read the target must process each step
                independently, without positions or recurrence.
            start_id, end_id, pad_id: as for `Searchable`.

        Raises:
            ValueError: if the model has other parts, or they do not fit together.
        """
        return cls(*parts_of(model), start_id, end_id, pad_id)

    @functools.cached_property
    def has_output_per_id(self) -> bool:
        """Whether the encoder has one output for each source id."""
        length = self.cell.attention.longest_source or 64
        return self.num_outputs([length]) in (length, math.inf, None)

    @functools.cached_property
    def longest_source(self) -> int | None:
        """The maximum number of ids in a source that the attention can read; None: no limit."""
        limit = self.cell.attention.longest_source
        if limit is None or self.has_output_per_id:
            return limit
        lengths, most = range(1, 64 * limit), float(limit)
        return bisect.bisect_right(lengths, most, key=lambda n: self.num_outputs([n]) or n)

    def num_outputs(self, shape: Sequence[int | None], dtype: Any = "int32") -> float | None:
        """The number of encoder outputs for one source of a shape; None if it is unknown.

        It is infinity if the encoder refuses the shape, for example because its table of positions
        is shorter.
        """
        spec = keras.KerasTensor((1, *shape), keras.backend.standardize_dtype(dtype))
        is_sequential = isinstance(self.encoder, keras.Sequential)
        try:
            # As a whole, a `Sequential` refuses other sizes than those of its first call.
            for layer in self.encoder.layers if is_sequential else [self.encoder]:
                spec = layer.compute_output_spec(spec)
        except (TypeError, ValueError):
            return math.inf
        count: int | None = keras.tree.flatten(spec)[0].shape[1]
        return count

    @property
    def variables(self) -> list[Any]:
        """The variables of all parts. A variable that parts share is listed once."""
        parts = (self.encoder, self.embedding, self.decoder, self.logits)
        return list({id(v): v for part in parts for v in part.variables}.values())

    def count_params(self) -> int:
        """The number of weights of all parts."""
        weights = (v for v in self.variables if not v.path.endswith("seed_generator_state"))
        return sum(math.prod(v.shape) for v in weights)

    def encode(self, source: Any) -> tuple[Any, Any]:
        """As `Seq2Seq.encode`."""
        is_for_xla = keras.backend.backend() == "tensorflow" and has_static_shapes()
        with without_cudnn(self.encoder) if is_for_xla else contextlib.nullcontext():
            found = self.encoder(source, training=False)
        outputs, *others = found if isinstance(found, (list, tuple)) else [found]
        others = [each for each in others if each is not None]
        masks = [each for each in others if _is_mask(each)]
        states = [each for each in others if not _is_mask(each)]
        if len(states) == 1 and isinstance(states[0], (list, tuple)):
            states = list(states[0])  # the nesting tells which layer each state is from
        mask = masks[0] if masks else attached_mask(outputs)
        check_rank("encode", outputs, ("batch", "source_length", "units"))
        if mask is None and has_ids(source):
            mask = ops.not_equal(source, self.pad_id)
        mask = full_mask(outputs, mask)
        check_size("encode", "units", outputs.shape[-1], self.decoder.encoder_units)
        check_mask("mask of encode", mask, outputs)
        memory = self.cell.attention.prepare(outputs, mask)
        return memory, self.decoder.cell_states(states, outputs.shape[0]) if states else None

    def token_embeddings(self) -> Any:
        """The vector that is fed back for each of search's tokens: float [num_tokens, n]."""
        table = self.embedding(ops.arange(self.vocab_size, dtype="int32")[None])[0]
        return ops.cast(self._ordered(table, axis=0), self.cell.compute_dtype)

    def output_map(self) -> tuple[Any, Any] | None:
        """Matrix [units, num_tokens] and bias [num_tokens] of a plain output layer, else None.

        Also None if the output layer is quantised, or if its compute dtype is not the decoder's,
        such as float32 with a bfloat16 decoder: search would compute in the decoder's dtype.
        """
        layer = self.logits
        if (
            type(layer) is not keras.layers.Dense
            or layer.activation is not keras.activations.linear
            or layer.compute_dtype != self.cell.compute_dtype
            or layer.quantization_mode is not None
        ):
            return None
        kernel = ops.convert_to_tensor(layer.kernel)
        bias = layer.bias if layer.use_bias else ops.zeros(self.vocab_size, kernel.dtype)
        return self._ordered(kernel, axis=1), self._counted(bias)

    def to_logits(self, mixed: Any) -> Any:
        """Logits in the order of search's tokens, in float32 at least."""
        return at_least_float32(self._counted(self.logits(mixed, training=False)))

    def _ordered(self, x: Any, axis: int) -> Any:
        """Puts an axis of ids into search's order of tokens."""
        return x if self._is_in_order else ops.take(x, self.ids, axis=axis)

    def _counted(self, logits: Any) -> Any:
        """Puts logits into search's order of tokens; an id with several roles counts once."""
        if self._is_in_order:
            return logits
        never = ops.cast(-np.inf, logits.dtype)
        return ops.where(self._counts, self._ordered(logits, axis=-1), never)

    @property
    def num_tokens(self) -> int:
        """The number of search's tokens: more than there are ids if one id has several roles."""
        return len(self.ids)

    def to_tokens(self, ids: Any) -> Any:
        """Search's tokens, see `Preparable`, for ids: the inverse of `to_ids`."""
        inverse = np.zeros(self.vocab_size, np.int32)
        inverse[self.ids[::-1]] = np.arange(len(self.ids))[::-1]  # an id's first number
        return ops.take(inverse, ids)

    def to_ids(self, tokens: Any) -> Any:
        """The ids of search's tokens."""
        if self._is_in_order:
            return tokens
        return self.ids[tokens] if isinstance(tokens, np.ndarray) else ops.take(self.ids, tokens)


@contextlib.contextmanager
def without_cudnn(encode: Any) -> Iterator[None]:
    """Keeps Keras's recurrent layers from using cuDNN, which neither XLA nor CPUs can run."""
    kept = [
        (layer, layer.use_cudnn)
        for layer in (encode, *layers_inside(encode))
        if hasattr(layer, "use_cudnn")
    ]
    try:
        for layer, _ in kept:
            layer.use_cudnn = False
        yield
    finally:
        for layer, use_cudnn in kept:
            layer.use_cudnn = use_cudnn


def _vocab_size(layer: Any, cell: Any) -> int:
    """The number of logits that a layer computes.

    Raises:
        ValueError: if it ends with a softmax; search itself takes the softmax.
    """
    inputs = np.random.default_rng(1).normal(size=(1, 4, cell.output_units))
    outputs = layer(ops.cast(inputs, cell.compute_dtype), training=False)
    if is_eager(outputs):
        found = np.array(ops.cast(outputs, "float32"))
        if found.min() >= 0.0 and np.allclose(found.sum(axis=-1), 1.0, atol=0.03):
            raise ValueError(
                "`logits`: expected logits; got probabilities of a softmax. `TokenCrossEntropy` "
                "and search take the softmax themselves."
            )
    return int(outputs.shape[-1])


def _input_of(encode: Any) -> keras.KerasTensor | None:
    """The one input of a functional or sequential model, with its shape and dtype, or None."""
    inputs = getattr(encode, "inputs", None)
    if not (
        isinstance(inputs, list) and len(inputs) == 1 and isinstance(inputs[0], keras.KerasTensor)
    ):
        return None
    # The sizes of a `Sequential` without `Input` are those of its first call.
    is_of_first_call = isinstance(encode, keras.Sequential) and inputs[0].shape[0] is not None
    return None if is_of_first_call else inputs[0]


def _input_units(layer: Any) -> int | None:
    """The width of a built layer's inputs; None if unknown."""
    first = layer.layers[0] if isinstance(layer, keras.Sequential) else layer
    return first.kernel.shape[0] if isinstance(first, keras.layers.Dense) else None


def _is_mask(x: Any) -> bool:
    """Whether `x` is a bool array, unlike a state or a list of states."""
    return hasattr(x, "dtype") and keras.backend.standardize_dtype(x.dtype) == "bool"

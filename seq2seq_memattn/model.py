"""The sequence-to-sequence model, an ordinary `keras.Model`."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import keras
from keras import ops

from seq2seq_memattn.attention.registry import make_attention
from seq2seq_memattn.checks import check_rank, check_size
from seq2seq_memattn.compute.ids import ids_below, to_int32
from seq2seq_memattn.compute.padding import padding_last
from seq2seq_memattn.compute.precision import at_least_float32
from seq2seq_memattn.compute.private import freeze_inside, layers_inside
from seq2seq_memattn.compute.seeds import SeedGenerator
from seq2seq_memattn.compute.tracing import trace
from seq2seq_memattn.config import ModelConfig, used_options
from seq2seq_memattn.layers.attention_cell import AttentionCell
from seq2seq_memattn.layers.attention_decoder import AttentionDecoder
from seq2seq_memattn.layers.bridge import Bridge
from seq2seq_memattn.layers.encoder import Encoder
from seq2seq_memattn.layers.teacher_forcing import OUTPUTS_ONLY, Asked, Decoded
from seq2seq_memattn.layers.tied_dense import TiedDense
from seq2seq_memattn.loops.cell_steps import state_units
from seq2seq_memattn.loops.step_inputs import StepInputs
from seq2seq_memattn.vocabulary import PAD_ID

CELLS = {"lstm": keras.layers.LSTMCell, "gru": keras.layers.GRUCell}
SMALL_VOCABULARY = 512  # most ids for which `_step_inputs` uses a table; a batch has more tokens


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class Seq2Seq(keras.Model):
    """Sequence-to-sequence model: encoder, attention and decoder, made from one record of options.

    Source: Britz, Guan and Luong (2017), figure 1, with the set-up of google/seq2seq.

    Args:
        config: `ModelConfig`, or the dict that `ModelConfig.to_dict` makes.

    Call arguments:
        inputs: dict of `source` int32 [batch, source_length] (symbols, end token, padding) and
            `target_inputs` int32 [batch, target_length] (start token, symbols, padding).

    Returns:
        float [batch, target_length, target_vocab_size]: logits under teacher forcing.

    Masking: padding (id 0) never changes a result. It must come last, which compiled code (XLA,
        JAX) does not check. Logits on padding have no meaning.

    Raises:
        ValueError: if the sizes in `config` do not fit together, an input has a wrong rank, or the
            batch sizes of the inputs differ; in eager mode, for ids outside the vocabularies. A
            plain TensorFlow graph raises `InvalidArgumentError` for such ids when the graph runs.
            Compiled code (XLA, JAX) does not check ids: if one is outside its vocabulary, the
            logits are meaningless.

    Example:
    >>> from keras import ops
    >>> from seq2seq_memattn import ModelConfig, Seq2Seq
    >>> model = Seq2Seq(ModelConfig(encoder_units=8, decoder_units=8, attention="k_memory:4"))
    >>> ids = ops.ones([2, 5], dtype="int32")
    >>> tuple(model({"source": ids, "target_inputs": ids}).shape)
    (2, 5, 23)
    """

    def __init__(self, config: ModelConfig | dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(config, ModelConfig):
            config = ModelConfig.from_dict(used_options(config))
        _check_widths(config)
        self.config = config
        self.seed_generator = SeedGenerator(config.seed)
        seeds, dtype = _seeds(config.seed), self.dtype_policy
        is_joint = config.tied_embeddings == "all"
        if not is_joint:
            self.source_embedding = _embedding(
                config.source_vocab_size, "source", config, seeds, dtype
            )
        self.target_embedding = _embedding(config.target_vocab_size, "target", config, seeds, dtype)
        if is_joint:
            self.source_embedding = self.target_embedding
        self.encoder = Encoder(
            config.encoder_units,
            config.encoder_layers,
            config.encoder_cell,
            config.bidirectional,
            config.encoder_stacking,
            config.dropout,
            _kernel_initializer(config, next(seeds)),
            seed=next(seeds),
            dtype=dtype,
            name="encoder",
        )
        self.encoder_projection = (
            keras.layers.Dense(
                config.encoder_projection_units, dtype=dtype, name="encoder_projection"
            )
            if config.encoder_projection_units
            else None
        )
        attention = make_attention(config, dtype)
        cells = [
            _decoder_cell(index, config, seeds, dtype) for index in range(config.decoder_layers)
        ]
        kind: Any = config.bridge_kind
        dense = (config.bridge_from, config.bridge_activation, config.bridge_outputs_only)
        self.bridge = Bridge(
            kind,
            [state_units(cell) for cell in cells],
            *(dense if kind == "dense" else ()),
            dtype=dtype,
            name="bridge",
        )
        mixing = config.mixing_layer
        self.cell = AttentionCell(
            cells,
            attention,
            config.read,
            config.input_feeding,
            None if mixing == "none" else config.output_units,
            "linear" if mixing == "linear" else "tanh",
            config.mixing_from,
            dtype=dtype,
            name="decoder",
        )
        output_layer = keras.layers.Dense if config.tied_embeddings == "none" else TiedDense
        self.logits = output_layer(config.target_vocab_size, dtype=dtype, name="logits")
        self.decoder = AttentionDecoder(
            self.cell,
            dropout=config.dropout,
            seed=self.seed_generator,
            dtype=dtype,
            name="attention_decoder",
        )
        _seed_initializers(layers_inside(self), seeds)
        self._build_all()
        freeze_inside(self)

    def _build_all(self) -> None:
        """Creates all weights before the first batch, since every size is known."""
        for embedding in (self.source_embedding, self.target_embedding):
            if not embedding.built:
                embedding.build()
        self.encoder.build((None, None, self.config.embedding_dim))
        # Tracing creates the weights faster than running: JAX would compile each operation alone.
        # Only one step is traced; if the loops were traced, they would take most of the time.
        encoded = self.encoder.spec_of_one_token()
        ids = keras.KerasTensor((1, 1), dtype="int32")
        trace(self._one_step, encoded.outputs, encoded.states, ids)
        self.decoder.built = self.built = True

    def _one_step(self, outputs: Any, states: Any, ids: Any) -> Any:
        """The part of the model from the encoder's results to the logits, for one token."""
        mask = ops.ones_like(ids, dtype="bool")
        memory, cell_states = self._remember(outputs, states, mask)
        state = self.cell.initial_state(memory, 1, cell_states)
        mixed, _, _ = self.cell(self.target_embedding(ids), memory, state)
        return self.to_logits(mixed)

    def encode(self, source: Any, training: bool = False) -> tuple[Any, Any]:
        """Encodes the sources, once for all steps.

        Args:
            source: int32 [batch, source_length].
            training: bool.

        Returns:
            memory: record from `attention.prepare`.
            cell_states: for each decoder layer, a list of float [batch, units].
        """
        mask = ops.not_equal(source, PAD_ID)
        inputs = _step_inputs(self.source_embedding, source, training)
        outputs_only = self.bridge.kind == "zero"
        encoded = self.encoder(inputs, mask=mask, training=training, outputs_only=outputs_only)
        memory, cell_states = self._remember(encoded.outputs, encoded.states, mask)
        if training and self.config.slot_dropout:
            memory = memory._replace(rows=self._without_some(memory.rows))
        return memory, cell_states

    def _without_some(self, rows: Any) -> Any:
        """Dropout of whole memory rows: sets random rows to 0 and scales the others up."""
        rate = self.config.slot_dropout
        kept = keras.random.dropout(ops.ones_like(rows[:, :, :1]), rate, seed=self.seed_generator)
        return rows * kept

    def _remember(self, outputs: Any, states: Any, mask: Any) -> tuple[Any, Any]:
        """Memory and cell states, from the encoder's results."""
        if self.encoder_projection is not None:
            outputs = self.encoder_projection(outputs)
        return self.cell.attention.prepare(outputs, mask), self.bridge(states)

    def teacher_force(
        self,
        target_inputs: Any,
        memory: Any,
        cell_states: Any,
        training: bool = False,
        asked: Asked = OUTPUTS_ONLY,
    ) -> tuple[Any, Decoded]:
        """Runs all steps of known targets.

        Returns:
            logits: float [batch, target_length, target_vocab_size].
            decoded: the decoder's other results: what `asked` names, and the strengths of flexible
                attention, float [batch, target_length].
        """
        inputs = _step_inputs(self.target_embedding, target_inputs, training)
        mask = padding_last("target_inputs", ops.not_equal(target_inputs, PAD_ID))
        lengths = ops.sum(ops.cast(mask, "int32"), axis=1)
        decoded = self.decoder.teacher_force(inputs, lengths, memory, cell_states, training, asked)
        return self.to_logits(decoded.outputs), decoded

    # `Preparable`, the interface for search.

    pad_id = PAD_ID

    @property
    def source_input(self) -> keras.KerasTensor:
        """Shape and dtype of source ids."""
        return keras.KerasTensor((None, None), "int32")

    @property
    def source_vocab_size(self) -> int:
        """The number of source ids that the model embeds."""
        return self.config.source_vocab_size

    @property
    def longest_source(self) -> int | None:
        """The maximum number of tokens in a source, end token included; None: no limit."""
        return self.config.longest_source

    @property
    def vocab_size(self) -> int:
        """The number of target tokens."""
        return self.config.target_vocab_size

    @property
    def num_tokens(self) -> int:
        """The number of tokens that search distinguishes, here the target ids; see `Preparable`."""
        return self.vocab_size

    def token_embeddings(self) -> Any:
        """The vector fed back for each token: float [target_vocab_size, embedding_dim]."""
        return ops.cast(_table(self.target_embedding), self.compute_dtype)

    def output_map(self) -> tuple[Any, Any] | None:
        """Matrix [units, target_vocab_size] and bias of the output layer; None if quantised."""
        if isinstance(self.logits, TiedDense):
            return ops.transpose(_table(self.target_embedding)), self.logits.bias
        if self.logits.quantization_mode is not None:
            return None
        return self.logits.kernel, self.logits.bias

    def to_ids(self, tokens: Any) -> Any:
        """The ids of the tokens that search uses; here, the tokens are the ids."""
        return tokens

    def to_tokens(self, ids: Any) -> Any:
        """Search's tokens for ids: the inverse of `to_ids`."""
        return ids

    def to_logits(self, mixed: Any) -> Any:
        """Logits [..., target_vocab_size] of mixed outputs, in float32 at least."""
        if isinstance(self.logits, TiedDense):
            logits = self.logits(mixed, _table(self.target_embedding))
        else:
            logits = self.logits(mixed)
        return at_least_float32(logits)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        # Checked here, not in `call`: Keras adds a list of all arguments to an error of `call`.
        sizes = {
            "source": self.source_vocab_size,
            "target_inputs": self.config.target_vocab_size,
        }
        if not isinstance(inputs, Mapping) or not sizes.keys() <= inputs.keys():
            got = sorted(inputs) if isinstance(inputs, Mapping) else type(inputs).__name__
            raise ValueError(f"`inputs`: expected a dictionary with {sorted(sizes)}; got {got}.")
        for name in sizes:
            check_rank(name, inputs[name], ("batch", "length"))
        ids = {name: ids_below(name, inputs[name], size) for name, size in sizes.items()}
        source, targets = ids["source"], ids["target_inputs"]
        check_size("target_inputs", "batch", targets.shape[0], source.shape[0])
        # Keras would round floats to the compute dtype, in which 256 and 257 may be one number.
        ids = {
            name: given if isinstance(given, keras.KerasTensor) else to_int32(given)
            for name, given in ids.items()
        }
        return super().__call__(ids, *args, **kwargs)

    def call(self, inputs: Any, training: bool = False, asked: Asked | None = None) -> Any:
        # On JAX, Keras's `fit` calls this method without `__call__`.
        source, targets = (to_int32(inputs[name]) for name in ("source", "target_inputs"))
        memory, cell_states = self.encode(source, training)
        logits, decoded = self.teacher_force(
            targets, memory, cell_states, training, asked or OUTPUTS_ONLY
        )
        return logits if asked is None else (logits, decoded)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "config": self.config.to_dict()}


def _step_inputs(embedding: keras.layers.Embedding, ids: Any, training: bool) -> Any:
    """Inputs of `Encoder` and `TeacherForcedDecoder`: embeddings, or ids and a small table.

    With a table, only its rows are projected, not every token. This saves work only in training,
    since a single sentence has fewer tokens than most tables have rows.
    """
    if not training or embedding.input_dim > SMALL_VOCABULARY:
        return embedding(ids)
    return StepInputs(ids, ops.cast(_table(embedding), embedding.compute_dtype))


def _table(embedding: keras.layers.Embedding) -> Any:
    """The vectors of all ids: float [ids, embedding_dim]."""
    if embedding.quantization_mode is not None:  # the weights are ints without their scales
        return embedding(ops.arange(embedding.input_dim, dtype="int32"))
    return ops.convert_to_tensor(embedding.embeddings)


def _check_widths(config: ModelConfig) -> None:
    """Raises ValueError for sizes that do not fit together.

    Checked here, because Keras adds a list of all arguments to an error of a layer's call.
    """
    read = config.encoder_units * (2 if config.bidirectional else 1)
    keys = config.encoder_projection_units or read
    if config.attention == "luong_dot" and keys != config.decoder_units:
        raise ValueError(
            f"`attention` luong_dot needs encoder outputs as wide as the decoder's; got {keys} and "
            f"{config.decoder_units} units. Project them: "
            f"`encoder_projection_units` {config.decoder_units}."
        )
    if config.attention == "constant" and config.encoder_projection_units:
        raise ValueError(
            "`attention` constant takes the encoder's states as they are; got "
            f"`encoder_projection_units` {config.encoder_projection_units}."
        )
    if config.bridge_from == "backward" and not config.bidirectional:
        raise ValueError(
            "`bridge_from` backward needs a bidirectional encoder; got `bidirectional` False."
        )
    encoder = (config.encoder_cell, config.encoder_layers, read)
    decoder = (config.decoder_cell, config.decoder_layers, config.decoder_units)
    if config.bridge == "copy" and encoder != decoder:
        raise ValueError(
            "`bridge` copy needs encoder and decoder with equal states; got {} x {} of {} units "
            "and {} x {} of {}.".format(*encoder[1::-1], encoder[2], *decoder[1::-1], decoder[2])
        )


def _seeds(seed: int) -> Iterator[int]:
    """A seed for each initialiser of a model."""
    return ((seed * 1000 + number) % 2**31 for number in itertools.count(1))  # JAX takes 32 bits


def _kernel_initializer(config: ModelConfig, seed: int) -> Any:
    if config.initializer == "glorot":
        return keras.initializers.GlorotUniform(seed=seed)
    limit = 0.1 if config.initializer == "uniform_0.1" else 0.04
    return keras.initializers.RandomUniform(-limit, limit, seed=seed)


def _seed_initializers(layers: Any, seeds: Iterator[int]) -> None:
    """Seeds the initialisers that layers chose by default, from the model's seed."""
    for layer in layers:
        initializer: Any = getattr(layer, "kernel_initializer", None)
        options = initializer.get_config() if initializer is not None else {}
        if "seed" in options and options["seed"] is None:
            layer.kernel_initializer = initializer.from_config({**options, "seed": next(seeds)})


def _embedding(
    size: int, side: str, config: ModelConfig, seeds: Iterator[int], dtype: Any
) -> keras.layers.Embedding:
    return keras.layers.Embedding(
        size,
        config.embedding_dim,
        embeddings_initializer=_kernel_initializer(config, next(seeds)),
        dtype=dtype,
        name=f"{side}_embedding",
    )


def _decoder_cell(index: int, config: ModelConfig, seeds: Iterator[int], dtype: Any) -> Any:
    return CELLS[config.decoder_cell](
        config.decoder_units,
        kernel_initializer=_kernel_initializer(config, next(seeds)),
        recurrent_initializer=_kernel_initializer(config, next(seeds)),
        seed=config.seed,  # never used, but saved: a random seed would differ in every saved run
        dtype=dtype,
        name=f"decoder_cell_{index}",
    )

"""Small Keras models, as users write them, for `Searchable`. They do not need TensorFlow."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from seq2seq_memattn.attention.k_memory import KMemoryAttention
from seq2seq_memattn.layers.attention_cell import AttentionCell
from seq2seq_memattn.layers.attention_decoder import AttentionDecoder
from seq2seq_memattn.search.beam import beam_search
from seq2seq_memattn.search.searchable import Searchable
from seq2seq_memattn.vocabulary import PAD_ID, START_ID

SOURCE_VOCABULARY, VOCABULARY, WIDTH, ENCODER_UNITS, UNITS = 9, 7, 5, 6, 8
SOURCE = np.array([[3, 4, 5, 7, 2], [6, 5, 2, 0, 0], [8, 2, 0, 0, 0]], np.int32)

# An encoder's results for symbolic source ids: outputs, states or (), a mask or None.
Encoded = tuple[Any, Any, Any]


def embedded(source: Any) -> Any:
    return keras.layers.Embedding(SOURCE_VOCABULARY, WIDTH, name="source_embedding")(source)


def outputs_alone(source: Any) -> Encoded:
    return keras.layers.GRU(ENCODER_UNITS, return_sequences=True)(embedded(source)), (), None


def outputs_and_states(source: Any) -> Encoded:
    lstm = keras.layers.LSTM(UNITS, return_sequences=True, return_state=True)
    outputs, *states = lstm(embedded(source))
    return outputs, states, None


def outputs_and_mask(source: Any) -> Encoded:
    """An encoder whose mask leaves out a real token."""
    outputs, _, _ = outputs_alone(source)
    return outputs, (), ops.logical_and(source != PAD_ID, source != 5)


def states_of_both_directions(source: Any) -> Encoded:
    lstm = keras.layers.LSTM(UNITS // 2, return_sequences=True, return_state=True)
    outputs, *states = keras.layers.Bidirectional(lstm)(embedded(source))
    return outputs, states, None


def states_of_two_layers(source: Any) -> Encoded:
    """The states of each layer in a list of their own, for two cells."""
    x, states = embedded(source), []
    for _ in range(2):
        gru = keras.layers.GRU(UNITS // 2, return_sequences=True, return_state=True)
        x, *both = keras.layers.Bidirectional(gru)(x)
        states.append(both)
    return x, states, None


def all_three(source: Any) -> Encoded:
    outputs, states, _ = outputs_and_states(source)
    return outputs, states, ops.logical_and(source != PAD_ID, source != 5)


class Own(NamedTuple):
    """The parts of a model.

    Fields:
        encode: maps sources to the encoder's results: one, or a list.
        trained: maps sources and target inputs to logits, under teacher forcing.
    """

    encode: Any
    embedding: Any
    decoder: Any
    logits: Any
    trained: Any

    def searchable(self, **ids: int) -> Searchable:
        return Searchable(*self[:4], **ids)


def make(
    encoder: Callable[[Any], Encoded] = outputs_alone,
    cell: Any = None,
    attention: Any = None,
    embedding: Any = None,
    logits: Any = None,
) -> Own:
    source, target = (keras.Input((None,), dtype="int32") for _ in range(2))
    embedding = embedding or keras.layers.Embedding(VOCABULARY, WIDTH)
    if isinstance(cell, AttentionCell):
        decoder = AttentionDecoder(cell)
    else:
        decoder = AttentionDecoder(
            cell or keras.layers.LSTMCell(UNITS),
            attention or KMemoryAttention(3, encoder_score="sigmoid"),
            mixing_units=4,
        )
    logits = logits or keras.layers.Dense(VOCABULARY)
    outputs, states, mask = encoder(source)
    decoded = decoder(
        embedding(target),
        outputs,
        list(states) or None,
        encoder_outputs_mask=source != PAD_ID if mask is None else mask,
    )
    encoded = [outputs, *states, *([] if mask is None else [mask])]
    encode = keras.Model(source, encoded[0] if len(encoded) == 1 else encoded)
    model = keras.Model([source, target], logits(decoded))
    for index, weight in enumerate(model.weights):  # as large as trained ones
        generator = np.random.default_rng([index, *weight.shape])
        weight.assign(0.7 * generator.normal(size=weight.shape))
    return Own(encode, embedding, decoder, logits, model)


class Stepped:
    """The same parts without `Searchable`: calls the cell at each step, for ids 0, 1 and 2."""

    def __init__(self, own: Own) -> None:
        self.own = own
        self.cell = own.decoder.cell

    def start(self, source: Any, num_queries: int) -> tuple[Any, Any]:
        encoded = self.own.encode(source)
        outputs, *states = encoded if isinstance(encoded, list) else [encoded]
        last = keras.tree.flatten(encoded)[-1]
        masks = [last] if keras.backend.standardize_dtype(last.dtype) == "bool" else []
        states = states[: len(states) - len(masks)]
        memory = self.cell.attention.prepare(outputs, masks[0] if masks else source != PAD_ID)
        first = self.own.decoder.cell_states(states) if states else None
        return memory, self.cell.initial_state(memory, num_queries, first)

    def step(self, tokens: Any, memory: Any, state: Any) -> tuple[Any, Any, Any]:
        outputs, scores, state = self.cell(self.own.embedding(tokens), memory, state)
        return self.own.logits(outputs), scores, state


def rescored(model: Any, source: Any, tokens: Any, starts: Any = START_ID) -> Any:
    """The log-probability of every token of hypotheses under teacher forcing.

    Args:
        model: see `Own.trained`.
        source: int32 [batch, source_length].
        tokens: int32 [batch, n_best, length].
        starts: int. The first token of the targets.

    Returns:
        float [batch, n_best, length].
    """
    batch, n_best, length = tokens.shape
    flat = np.reshape(tokens, (batch * n_best, length))
    inputs = np.concatenate([np.full_like(flat[:, :1], starts), flat[:, :-1]], axis=1)
    # Padding within the targets is an ordinary id here, because the decoder gets no mask.
    log_probs = np.array(ops.log_softmax(model([np.repeat(source, n_best, axis=0), inputs])))
    chosen: npt.NDArray[Any] = np.take_along_axis(log_probs, flat[:, :, None], axis=2)
    return chosen.reshape(batch, n_best, length)


def found_while_weights_change() -> list[Any]:
    """Log-probabilities found by several searches: nested lists [searches, batch, n_best].

    All but the last search use one `Searchable`, and before each of them except the first, the
    weights of another part change. The last search uses a new `Searchable` of the same parts.
    """
    own = make()

    def found(searchable: Searchable) -> Any:
        return np.array(beam_search(searchable, SOURCE, 3, 2, max_length=5).log_probs).tolist()

    searchable = own.searchable()
    results = [found(searchable)]
    for part in ("logits", "embedding", "decoder", "encode"):
        for weight in getattr(own, part).trainable_weights:
            weight.assign(1.1 * ops.convert_to_tensor(weight))
        results.append(found(searchable))
    return [*results, found(own.searchable())]

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

from seq2seq_memattn.attention.k_memory import KMemoryAttention
from seq2seq_memattn.layers.attention_decoder import AttentionDecoder
from seq2seq_memattn.layers.bridge import Bridge
from seq2seq_memattn.search.beam import beam_search
from seq2seq_memattn.search.searchable import Searchable
from tests.errors import refused
from tests.search import own_parts
from tests.search.models import assert_same_search
from tests.search.own_parts import SOURCE, UNITS, VOCABULARY, WIDTH, rescored
from tests.tolerances import as_array, assert_close

ENCODERS = [
    own_parts.outputs_alone,
    own_parts.outputs_and_states,
    own_parts.outputs_and_mask,
    own_parts.states_of_both_directions,
    own_parts.states_of_two_layers,
    own_parts.all_three,
]


def search(searchable: Searchable) -> Any:
    return beam_search(searchable, SOURCE, 3, 2, max_length=5)


def assert_found_as_by(model: keras.Model, logits: Callable[..., Any]) -> None:
    """Checks that search gives its targets the log-probabilities that `logits` give them."""
    found = search(Searchable.from_model(model))
    tokens, steps = as_array(found.tokens), as_array(found.steps)
    real = np.arange(tokens.shape[2]) < steps[:, :, None]
    assert_close(found.log_probs, np.sum(rescored(logits, SOURCE, tokens) * real, axis=2))


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: encoder.__name__)
def test_the_parts_of_a_model_are_those_given_by_hand(encoder: Callable[..., Any]) -> None:
    cell = None
    if encoder is own_parts.states_of_two_layers:
        cell = [keras.layers.GRUCell(UNITS), keras.layers.GRUCell(UNITS)]
    own = own_parts.make(encoder, cell)
    found = Searchable.from_model(own.trained)
    assert found.decoder is own.decoder
    assert found.embedding is own.embedding
    assert found.logits is own.logits
    assert_same_search(search(found), search(own.searchable()))


def model_of(kind: str) -> keras.Model:
    """A model with more than one layer between its parts, or without masks."""
    source, target = (keras.Input((None,), dtype="int32") for _ in range(2))
    embed = keras.layers.Embedding(9, WIDTH, mask_zero=kind != "no mask")
    gru = keras.layers.GRU(UNITS, return_sequences=True, return_state=True)
    outputs, *states = keras.layers.Bidirectional(gru)(embed(source))
    cells = [keras.layers.GRUCell(UNITS), keras.layers.GRUCell(UNITS)]
    bridge = Bridge("dense", state_units=[[UNITS], [UNITS]])
    decoder = AttentionDecoder(cells, KMemoryAttention(3), return_alignments=kind == "alignments")
    read = keras.layers.Dropout(0.2)(keras.layers.LayerNormalization()(embed(target)))
    found = decoder(read, outputs, bridge([[[state] for state in states]]))
    decoded, *others = found if isinstance(found, (list, tuple)) else [found]
    hidden = keras.layers.Dense(4, "tanh")(keras.layers.Dropout(0.2)(decoded))
    return keras.Model([source, target], [*others, keras.layers.Dense(VOCABULARY)(hidden)])


@pytest.mark.parametrize("is_loaded", [False, True], ids=["made", "loaded"])
@pytest.mark.parametrize("kind", ["masks", "no mask", "alignments"])
def test_search_gives_the_log_probabilities_of_the_model(
    kind: str, is_loaded: bool, tmp_path: Any
) -> None:
    model = model_of(kind)
    if is_loaded:
        model.save(tmp_path / "model.keras")
        model = keras.saving.load_model(tmp_path / "model.keras")

    def logits(inputs: Any) -> Any:
        outputs = model(inputs)
        return outputs[-1] if isinstance(outputs, (list, tuple)) else outputs

    assert_found_as_by(model, logits)


def test_ids_may_be_floats_as_keras_inputs_are_by_default() -> None:
    source, target = keras.Input((None,)), keras.Input((None,))
    embed_source = keras.layers.Embedding(9, WIDTH, mask_zero=True)
    embed_target = keras.layers.Embedding(VOCABULARY, WIDTH, mask_zero=True)
    encoded = keras.layers.GRU(UNITS, return_sequences=True)(embed_source(source))
    decoder = AttentionDecoder(keras.layers.GRUCell(UNITS), KMemoryAttention(3))
    logits = keras.layers.Dense(VOCABULARY)(decoder(embed_target(target), encoded))
    model = keras.Model([source, target], logits)
    assert_found_as_by(model, model)


def test_ids_are_passed_on() -> None:
    own = own_parts.make()
    found = Searchable.from_model(own.trained, start_id=4, end_id=5, pad_id=6)
    assert found.ids[:3].tolist() == [6, 4, 5]


def test_other_models_are_refused() -> None:
    own = own_parts.make()
    source, target = own.trained.inputs
    embedded = own.embedding(target)
    encoded = own.encode(source)
    decoded = own.decoder(embedded, encoded)
    for model, message in [
        (own.encode, "one call of an AttentionDecoder, not in an inner model; got"),
        (keras.Sequential([own.decoder]), "got Sequential with 0."),
        (own.decoder, "got AttentionDecoder with 0."),
        (
            keras.Model([source, target], [decoded, own.logits(own.decoder(embedded, encoded))]),
            "got Functional with 2.",
        ),
        (
            keras.Model([source, target], decoded),
            "expected one output that is computed from the decoder's outputs; got 0.",
        ),
        (
            keras.Model([source, target], [own.logits(decoded), ops.max(decoded, axis=-1)]),
            "expected one output that is computed from the decoder's outputs; got 2.",
        ),
        (
            keras.Model([source, target], own.logits(decoded + ops.mean(embedded))),
            "expected logits computed from",
        ),
    ]:
        found = refused(Searchable.from_model, model)
        assert found.startswith("`model`: ") and message in found


def test_two_sources_are_refused() -> None:
    own = own_parts.make()
    others = [keras.Input((None,), dtype="int32") for _ in range(3)]
    both = ops.concatenate([own.encode(one) for one in others[:2]], axis=1)
    logits = own.logits(own.decoder(own.embedding(others[2]), both))
    found = refused(Searchable.from_model, keras.Model(others, logits))
    assert found == "`model`: expected one input from which the source is computed; got 2."


class Positions(keras.layers.Layer):
    """Adds an embedding of the position, as other models do to their targets."""

    def build(self, input_shape: Any) -> None:
        self.table = self.add_weight(shape=(20, input_shape[-1]), initializer="uniform")

    def call(self, inputs: Any) -> Any:
        return inputs + self.table[: ops.shape(inputs)[1]]


@pytest.mark.parametrize("place", ["target", "logits"])
@pytest.mark.parametrize("kind", ["recurrence", "positions"])
def test_layers_that_read_other_steps_are_refused(place: str, kind: str) -> None:
    def other(x: Any) -> Any:
        if kind == "recurrence":
            return keras.layers.GRU(x.shape[-1], return_sequences=True)(x)
        return Positions()(x)

    own = own_parts.make()
    source, target = (keras.Input((None,), dtype="int32") for _ in range(2))
    embedded = own.embedding(target)
    embedded = other(embedded) if place == "target" else embedded
    decoded = own.decoder(embedded, own.encode(source))
    decoded = other(decoded) if place == "logits" else decoded
    found = refused(Searchable.from_model, keras.Model([source, target], own.logits(decoded)))
    assert found.startswith(f"`model`: expected layers for the {place} that process each step")


@pytest.mark.filterwarnings("ignore:Layer 'sequential")  # that it does not hand the mask on
@pytest.mark.parametrize("kind", ["sequential", "time distributed"])
def test_an_output_layer_may_get_the_mask_of_the_target(kind: str) -> None:
    dense = keras.layers.Dense(VOCABULARY)
    if kind == "sequential":
        logits: Any = keras.Sequential([keras.layers.Dense(4, "tanh"), dense])
    else:
        logits = keras.layers.TimeDistributed(dense)
    embedding = keras.layers.Embedding(VOCABULARY, WIDTH, mask_zero=True)
    own = own_parts.make(embedding=embedding, logits=logits)
    assert_same_search(search(Searchable.from_model(own.trained)), search(own.searchable()))


def test_a_mask_may_have_any_type() -> None:
    own = own_parts.make()
    source, target = (keras.Input((None,), dtype="int32") for _ in range(2))
    mask = ops.cast(source != 0, "float32")
    decoded = own.decoder(own.embedding(target), own.encode(source), encoder_outputs_mask=mask)
    found = Searchable.from_model(keras.Model([source, target], own.logits(decoded)))
    assert_same_search(search(found), search(own.searchable()))


def test_layers_after_the_decoder_may_get_the_mask_of_the_target() -> None:
    source, target = (keras.Input((None,), dtype="int32") for _ in range(2))
    read = keras.layers.Embedding(9, WIDTH, mask_zero=True)(source)
    encoded = keras.layers.GRU(UNITS, return_sequences=True)(read)
    embedded = keras.layers.ReversibleEmbedding(VOCABULARY, WIDTH, mask_zero=True)(target)
    decoder = AttentionDecoder(keras.layers.GRUCell(UNITS), KMemoryAttention(3))
    hidden = keras.layers.BatchNormalization()(decoder(embedded, encoded))
    hidden = hidden + keras.layers.TimeDistributed(keras.layers.Dense(UNITS + UNITS))(hidden)
    logits = keras.layers.TimeDistributed(keras.layers.Dense(VOCABULARY))(hidden)
    model = keras.Model([source, target], logits)
    assert_found_as_by(model, model)


def test_a_softmax_in_any_layer_is_refused() -> None:
    own = own_parts.make()
    source, target = (keras.Input((None,), dtype="int32") for _ in range(2))
    decoded = own.decoder(own.embedding(target), own.encode(source))
    dense = keras.layers.Dense(VOCABULARY, activation="softmax")
    for outputs in (ops.softmax(own.logits(decoded)), keras.layers.TimeDistributed(dense)(decoded)):
        message = refused(Searchable.from_model, keras.Model([source, target], outputs))
        assert message.startswith("`logits`: expected logits; got probabilities of a softmax.")


class Allowed(keras.layers.Layer):
    """Forbids tokens, as a model may do for those that it must not write."""

    def call(self, logits: Any, allowed_mask: Any) -> Any:
        return ops.where(allowed_mask, logits, -1e9)


def test_a_mask_that_is_constant_is_kept() -> None:
    own = own_parts.make()
    source, target = (keras.Input((None,), dtype="int32") for _ in range(2))
    decoded = own.decoder(own.embedding(target), own.encode(source))
    allowed = np.arange(VOCABULARY) < 5
    logits = Allowed()(own.logits(decoded), allowed_mask=allowed)
    found = search(Searchable.from_model(keras.Model([source, target], logits)))
    assert as_array(found.tokens).max() < 5
    assert as_array(search(own.searchable()).tokens).max() >= 5


class OwnEncoder(keras.layers.Layer):
    """A layer whose symbolic output has no mask, and whose output has one when it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = keras.layers.Embedding(9, WIDTH, mask_zero=True)
        self.gru = keras.layers.GRU(UNITS, return_sequences=True)

    def build(self, shape: Any) -> None:
        self.embedding.build(shape)
        self.gru.build((*shape, WIDTH))

    def call(self, source: Any) -> Any:
        return self.gru(self.embedding(source))


def encoder_of(kind: str) -> Any:
    if kind == "own layer":
        return OwnEncoder()
    layers = [
        keras.layers.Embedding(9, WIDTH, mask_zero=True),
        keras.layers.GRU(UNITS, return_sequences=True),
    ]
    if kind == "sequential":
        return keras.Sequential(layers)
    source = keras.Input((None,), dtype="int32")
    return keras.Model(source, layers[1](layers[0](source)))


@pytest.mark.parametrize("kind", ["functional", "sequential", "own layer"])
def test_an_encoder_in_a_model_of_its_own_hides_padding(kind: str) -> None:
    source, target = (keras.Input((None,), dtype="int32") for _ in range(2))
    embedded = keras.layers.Embedding(VOCABULARY, WIDTH, mask_zero=True)(target)
    decoder = AttentionDecoder(keras.layers.GRUCell(UNITS), KMemoryAttention(3))
    decoded = decoder(embedded, encoder_of(kind)(source))
    model = keras.Model([source, target], keras.layers.Dense(VOCABULARY)(decoded))
    assert_found_as_by(model, model)

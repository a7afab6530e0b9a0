"""Search with the layers of a user's own model."""

import copy
import json
import logging
import pickle
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from seq2seq_memattn.attention.additive import BahdanauAttention
from seq2seq_memattn.attention.flexible import FlexibleAttention
from seq2seq_memattn.attention.k_memory import KMemoryAttention
from seq2seq_memattn.compute.private import layers_inside
from seq2seq_memattn.layers.attention_cell import AttentionCell
from seq2seq_memattn.layers.attention_decoder import AttentionDecoder
from seq2seq_memattn.search.beam import BeamResult, banned_tokens, beam_search
from seq2seq_memattn.search.ensemble import Ensemble
from seq2seq_memattn.search.greedy import greedy_search
from seq2seq_memattn.search.prepared import PreparedModel
from seq2seq_memattn.search.sample import sample
from seq2seq_memattn.vocabulary import PAD_ID, START_ID
from tests.errors import refused
from tests.inputs import normal, randomise, tensor
from tests.layers.stepping import OwnCell
from tests.marks import quick, slow
from tests.reference.beam_search import exhaustive_search
from tests.running import run_python
from tests.search import own_parts
from tests.search.models import assert_same_search, quantise, small_model
from tests.search.own_parts import ENCODER_UNITS, SOURCE, UNITS, VOCABULARY, WIDTH, Own, Stepped
from tests.tolerances import as_array, assert_close

BEAM, N_BEST, STEPS = 4, 3, 6


def search(model: Any, source: Any = SOURCE) -> BeamResult:
    found: BeamResult = keras.tree.map_structure(
        as_array, beam_search(model, source, BEAM, N_BEST, max_length=STEPS)
    )
    return found


def written(found: BeamResult) -> Any:
    """A mask of the tokens that hypotheses wrote, including the end token."""
    return np.arange(found.tokens.shape[2]) < as_array(found.steps)[:, :, None]


def assert_rescored(own: Own, found: BeamResult, source: Any = SOURCE, starts: Any = 1) -> None:
    log_probs = own_parts.rescored(own.trained, source, found.tokens.astype(np.int32), starts)
    assert_close(found.log_probs, np.sum(log_probs * written(found), axis=2))


# Ids


IDS = {
    "others": (5, 3, 6),
    "exchanged": (2, 1, 0),
    "one for start and end": (4, 4, 0),
    "one for end and padding": (1, 6, 6),
    "one for start and padding": (0, 2, 0),
    "one for all three": (3, 3, 3),
}


def with_ids_of_ours(own: Own, start_id: int, end_id: int, pad_id: int) -> Own:
    """A model that does the same with ids 0, 1 and 2, each for one purpose only.

    If one id of `own` has two purposes, there are two ids here. An id that can never be written
    gets probability 0 if another id already has its probability.
    """
    special = [pad_id, start_id, end_id]
    ids = [*special, *(index for index in range(VOCABULARY) if index not in special)]
    embedding = keras.layers.Embedding(len(ids), WIDTH)
    logits = keras.layers.Dense(len(ids))
    ours = own_parts.make(embedding=embedding, logits=logits)
    ours.encode.set_weights(own.encode.get_weights())
    ours.decoder.set_weights(own.decoder.get_weights())
    embedding.set_weights([own.embedding.get_weights()[0][ids]])
    kernel, bias = own.logits.get_weights()
    bias = bias[ids]
    for place in (PAD_ID, START_ID):
        if special[place] in special[place + 1 :]:
            bias[place] = -1e9
    logits.set_weights([kernel[:, ids], bias])
    return ours


def sources(pad_id: int) -> tuple[Any, Any]:
    """The sources padded with `pad_id`, and with 0; neither id occurs as a token."""
    real, ids = SOURCE != PAD_ID, np.where(pad_id == SOURCE, 1, SOURCE)
    return np.where(real, ids, pad_id).astype(np.int32), np.where(real, ids, 0).astype(np.int32)


@pytest.mark.parametrize("name", quick(IDS, "others", "one for start and end"))
def test_ids_may_be_any(name: str) -> None:
    start_id, end_id, pad_id = IDS[name]
    own = own_parts.make()
    searchable = own.searchable(start_id=start_id, end_id=end_id, pad_id=pad_id)
    source, ours = sources(pad_id)
    found, expected = (
        search(searchable, source),
        search(with_ids_of_ours(own, *IDS[name]).searchable(), ours),
    )
    special = [pad_id, start_id, end_id]
    ids = np.array([*special, *(i for i in range(VOCABULARY) if i not in special)])
    np.testing.assert_array_equal(found.tokens, ids[expected.tokens.astype(int)])
    for field in ("log_probs", "normalised_log_probs", "lengths", "is_finished"):
        assert_close(getattr(found, field), getattr(expected, field))
    assert found.is_finished.any() and found.lengths.max() > 0
    tokens = found.tokens[written(found)]
    assert set(tokens) & (set(range(VOCABULARY)) - set(special))
    for excluded in {pad_id, start_id} - {end_id}:
        assert excluded not in tokens


@pytest.mark.parametrize("name", quick(IDS, "one for end and padding", "one for all three"))
def test_probabilities_are_those_of_the_models_own_ids(name: str) -> None:
    start_id, end_id, pad_id = IDS[name]
    own = own_parts.make(own_parts.outputs_and_mask)
    for logits in (own.logits, keras.Sequential([own.logits])):  # only a plain layer is folded
        logits(np.zeros([3, 5, 4]))  # a `Sequential` keeps the shape of its first inputs
        own = own._replace(logits=logits)
        found = search(own.searchable(start_id=start_id, end_id=end_id, pad_id=pad_id))
        assert_rescored(own, found, starts=start_id)


@pytest.mark.parametrize("name", quick(IDS, "others"))
def test_samples_have_the_models_own_ids_and_probabilities(name: str) -> None:
    start_id, end_id, pad_id = IDS[name]
    own = own_parts.make(own_parts.outputs_and_mask)
    searchable = own.searchable(start_id=start_id, end_id=end_id, pad_id=pad_id)
    drawn = sample(searchable, SOURCE, num_samples=20, max_length=STEPS, seed=3)
    found = keras.tree.map_structure(as_array, drawn)
    steps, tokens = found.lengths + found.is_finished, found.tokens.astype(np.int32)
    is_written = np.arange(STEPS) < steps[:, :, None]
    log_probs = own_parts.rescored(own.trained, SOURCE, tokens, start_id)
    assert_close(found.log_probs, np.sum(log_probs * is_written, axis=2))
    assert (tokens[~is_written] == pad_id).all()
    is_last = np.arange(STEPS) == steps[:, :, None] - 1
    is_finished = found.is_finished.astype(bool)
    assert is_finished.any() and (tokens[is_finished][is_last[is_finished]] == end_id).all()


# Parts


def sequential(*layers: Any) -> Any:
    return keras.Sequential(layers)


class Mixing(AttentionCell):
    """A cell with a mixing of its own."""

    def mix(self, output: Any, context: Any) -> Any:
        return 2.0 * super().mix(output, context) + ops.mean(context, axis=-1, keepdims=True)


PARTS: dict[str, dict[str, Any]] = {
    "logits without a bias": {"logits": lambda: keras.layers.Dense(VOCABULARY, use_bias=False)},
    "logits of two layers": {
        "logits": lambda: sequential(
            keras.layers.Dense(9, "tanh"), keras.layers.Dense(VOCABULARY, use_bias=False)
        )
    },
    "an activation in the last layer": {
        "logits": lambda: keras.layers.Dense(VOCABULARY, activation="log_softmax")
    },
    "an embedding of two layers": {
        "embedding": lambda: sequential(
            keras.layers.Embedding(VOCABULARY, 4), keras.layers.Dense(WIDTH, "tanh")
        )
    },
    "a cell of a user's": {"cell": lambda: OwnCell(UNITS)},
    "two cells": {"cell": lambda: [keras.layers.GRUCell(UNITS), keras.layers.LSTMCell(9)]},
    "a mixing of a user's": {
        "cell": lambda: Mixing(keras.layers.GRUCell(UNITS), KMemoryAttention(3), mixing_units=4)
    },
    "a mixing of a user's without a layer": {
        "cell": lambda: Mixing(
            keras.layers.GRUCell(UNITS), KMemoryAttention(3), mixing_from="output"
        )
    },
    "attention to positions": {"attention": lambda: BahdanauAttention(4)},
    "attention that reads what is fed back": {
        "attention": lambda: FlexibleAttention(4, threshold=0.5)
    },
}


QUICK = (
    "logits of two layers",
    "an activation in the last layer",
    "an embedding of two layers",
    "a mixing of a user's",
    "attention that reads what is fed back",
)


@pytest.mark.parametrize("name", quick(PARTS, *QUICK))
def test_a_search_equals_one_that_calls_the_parts(name: str) -> None:
    own = own_parts.make(**{part: make() for part, make in PARTS[name].items()})
    found = search(own.searchable())
    assert_same_search(found, search(Stepped(own)))
    assert_rescored(own, found)


ENCODERS = {
    "states": own_parts.outputs_and_states,
    "states of both directions": own_parts.states_of_both_directions,
    "states and a mask": own_parts.all_three,
    "a mask": own_parts.outputs_and_mask,
}


@pytest.mark.parametrize("name", quick(ENCODERS, "states of both directions", "a mask"))
def test_an_encoder_may_make_states_and_a_mask(name: str) -> None:
    own = own_parts.make(ENCODERS[name])
    found = search(own.searchable())
    assert_same_search(found, search(Stepped(own)))
    assert_rescored(own, found)
    alone = Own(keras.Model(own.encode.input, own.encode.outputs[0]), *own[1:])
    assert np.abs(search(alone.searchable()).log_probs - found.log_probs).max() > 1e-3


@pytest.mark.parametrize("is_one_list", [False, True])
def test_nested_states_are_joined_layer_by_layer_as_in_training(is_one_list: bool) -> None:
    cells = [keras.layers.GRUCell(own_parts.UNITS) for _ in range(2)]
    own = own_parts.make(own_parts.states_of_two_layers, cells)
    if is_one_list:
        outputs, *states = own.encode(own.encode.input)
        own = own._replace(encode=keras.Model(own.encode.input, [outputs, states]))
    assert_rescored(own, search(own.searchable()))


class Triple(keras.layers.Layer):
    """An encoder that returns a tuple of outputs, states or None, and mask or None."""

    def __init__(self, encode: Any, has_states: bool, has_mask: bool) -> None:
        super().__init__()
        self.encode, self.has_states, self.has_mask = encode, has_states, has_mask

    def call(self, source: Any) -> Any:
        outputs, *states, mask = self.encode(source)
        return outputs, states if self.has_states else None, mask if self.has_mask else None


@pytest.mark.parametrize(
    ("has_states", "has_mask"), [(False, True), *slow((True, False), (True, True), (False, False))]
)
def test_of_three_results_two_may_be_none(has_states: bool, has_mask: bool) -> None:
    own = own_parts.make(own_parts.all_three)
    outputs, *states, mask = own.encode.outputs
    encode = Triple(own.encode, has_states, has_mask)
    encode(SOURCE)
    kept = [outputs, *(states if has_states else []), *([mask] if has_mask else [])]
    flat = own._replace(encode=keras.Model(own.encode.input, kept))
    assert_same_search(search(own._replace(encode=encode).searchable()), search(flat.searchable()))


@pytest.mark.parametrize("name", ["an embedding of two layers", "two cells"])
def test_what_is_folded_gives_the_same(name: str) -> None:
    own = own_parts.make(**{part: make() for part, make in PARTS[name].items()})
    found = []
    for folded in (True, False):
        model = PreparedModel(own.searchable(), folded)
        assert isinstance(model.weights.folds, tuple) and bool(model.weights.folds) == folded
        (memory, state), logits = model.start(SOURCE, 2), []
        for token in (START_ID, 3, 6):
            tokens = np.full([len(SOURCE), 2], token, np.int32)
            made, _, state = model.step(tokens, memory, state)
            logits.append(made)
        found.append(logits)
    assert_close(*found)


def test_a_wide_beam_finds_what_exhaustive_enumeration_finds() -> None:
    own, ids, max_length = own_parts.make(), (5, 3, 6), 3
    searchable = own.searchable(start_id=ids[0], end_id=ids[1], pad_id=ids[2])
    source = SOURCE[:1, :3]

    def log_probs(prefix: tuple[int, ...]) -> Any:
        logits = own.trained([source, np.array([prefix], np.int32)])[0, -1]
        found = as_array(ops.log_softmax(logits))
        found[[ids[0], ids[2]]] = -np.inf
        return found

    # 4 ** 3 outputs are cut at the limit; 1 + 4 + 16 end before it.
    expected = exhaustive_search(log_probs, *ids[:2], max_length)
    assert len(expected) == 85
    found = beam_search(searchable, source, 85, 85, max_length=max_length)
    assert_close(as_array(found.log_probs)[0], [hypothesis.log_prob for hypothesis in expected])
    tokens = as_array(found.tokens)[0].astype(int)
    for row, hypothesis in zip(tokens[:20], expected[:20], strict=True):
        end = [ids[1]] if hypothesis.is_finished else []
        row_expected = [*hypothesis.tokens, *end]
        assert row.tolist() == row_expected + [ids[2]] * (max_length - len(row_expected))


# Weights

SCRIPT = """
import os
import sys

sys.modules["tensorflow"] = None  # importing it fails from here on
os.environ["KERAS_BACKEND"] = "jax"

import json

from tests.search.own_parts import found_while_weights_change

print(json.dumps(found_while_weights_change()))
"""


@pytest.mark.parametrize("backend", ["tensorflow", *slow("jax")])
def test_a_weight_changed_after_a_search_changes_the_next(backend: str) -> None:
    if backend == "jax":
        process = run_python("-c", SCRIPT)
        assert process.returncode == 0, process.stderr.decode()[-3000:]
        results = json.loads(process.stdout)
    else:
        results = own_parts.found_while_weights_change()
    found = np.array(results)
    assert (np.abs(np.diff(found[:-1], axis=0)).max(axis=(1, 2)) > 1e-3).all()
    assert_close(found[-2], found[-1])


def test_a_quantised_model_is_searched_with_its_own_numbers() -> None:
    own = own_parts.make()
    searchable = own.searchable()
    before = search(searchable)
    quantise(own.trained)
    found = search(searchable)
    assert np.abs(found.log_probs - before.log_probs).max() > 1e-3
    log_probs = own_parts.rescored(own.trained, SOURCE, found.tokens.astype(np.int32))
    # Where a sum is rounded in another order, an 8-bit number may differ in its last place.
    expected = np.sum(log_probs * written(found), axis=2)
    np.testing.assert_allclose(found.log_probs, expected, atol=0.05)


@pytest.mark.slow
def test_a_search_reads_what_lora_adds_after_another_search() -> None:
    own = own_parts.make()
    searchable = own.searchable()
    search(searchable)
    for index, layer in enumerate([own.logits, own.embedding, *layers_inside(own.decoder)]):
        if isinstance(layer, keras.layers.Dense | keras.layers.Embedding):
            layer.enable_lora(2)
            randomise(layer, seed=index)
    assert_rescored(own, search(searchable))


# Errors


def test_parts_of_a_wrong_kind_are_refused() -> None:
    own = own_parts.make()
    for part, given, message in [
        ("encode", lambda source: source, "expected a Keras layer or model; got function."),
        ("embedding", np.zeros([3, 4]), "expected a Keras layer or model; got ndarray."),
        ("decoder", keras.layers.GRU(3), "expected an AttentionDecoder; got GRU."),
        ("logits", keras.layers.Dense(3), "expected a layer that has been called; it has not."),
        (
            "decoder",
            AttentionDecoder(keras.layers.GRUCell(3), KMemoryAttention(2)),
            "expected a layer that has been called; it has not.",
        ),
    ]:
        found = refused(own._replace(**{part: given}).searchable)
        assert found.startswith(f"`{part}`: ") and message in found


def test_probabilities_in_place_of_logits_are_refused() -> None:
    with_softmax = keras.layers.Dense(VOCABULARY, activation="softmax")
    layers = [keras.layers.Dense(VOCABULARY), keras.layers.Softmax()]
    for logits in (with_softmax, keras.Sequential(layers), keras.Sequential([with_softmax])):
        message = refused(own_parts.make(logits=logits).searchable)
        assert message.startswith("`logits`: expected logits; got probabilities of a softmax.")


def test_ids_out_of_range_are_refused() -> None:
    own = own_parts.make()
    for name, value in [("start_id", 7), ("end_id", -1), ("pad_id", 99), ("end_id", 2.0)]:
        message = refused(own.searchable, **{name: value})
        assert message == f"`{name}` must be an int in 0..6; got {value}."
    assert own.searchable(end_id=np.int64(4)).ids[2] == 4


def called(layer: Any, *units: int) -> Any:
    layer(np.zeros([1, 1, *units], np.int32))
    return layer


def test_parts_of_wrong_widths_are_refused() -> None:
    own = own_parts.make()
    wide = called(keras.layers.Embedding(VOCABULARY, WIDTH + 1))
    narrow = called(keras.layers.Dense(VOCABULARY), 5)
    few = called(keras.layers.Embedding(VOCABULARY - 1, WIDTH))
    for part, given, message in [
        ("embedding", wide, "expected width 5; got 6."),
        ("embedding", few, "expected ids 7; got 6."),
        ("logits", narrow, "expected input width 4; got 5."),
        ("logits", called(sequential(narrow), 5), "expected input width 4; got 5."),
    ]:
        assert refused(own._replace(**{part: given}).searchable) == f"`{part}`: {message}"


def test_an_encoder_that_does_not_fit_is_refused() -> None:
    own = own_parts.make()
    source = own.encode.input
    embedded = own_parts.embedded(source)
    outputs, state = keras.layers.GRU(ENCODER_UNITS, return_sequences=True, return_state=True)(
        embedded
    )
    for encoded, message in [
        (embedded, "`encode`: expected units 6; got 5."),
        (embedded[:, 0], "`encode`: expected shape [batch, source_length, units]; got"),
        ([outputs, state], "`initial_state`: expected states [8, 8] wide"),
        ([outputs, outputs], "`initial_state`: expected shape [batch, units]; got"),
        (
            [outputs, ops.max(state, axis=0, keepdims=True)],
            "`initial_state`: expected batch 3; got 1.",
        ),
        ([outputs, source[:, 1:] != PAD_ID], "`mask of encode`: expected length 5; got 4."),
        ([outputs, source[:, 0] != PAD_ID], "`mask of encode`: expected shape [batch, length];"),
    ]:
        searchable = own._replace(encode=keras.Model(source, encoded)).searchable()
        assert message in refused(beam_search, searchable, SOURCE)


def test_sources_and_limits_out_of_range_are_refused() -> None:
    searchable = own_parts.make().searchable()
    for search in (beam_search, greedy_search, sample):
        assert "`source`: expected shape [batch, source_length]" in refused(
            search, searchable, SOURCE[0]
        )
        for limit in (0, np.int64(-1), 5.0, True):
            assert refused(search, searchable, SOURCE, max_length=limit) == (
                f"`max_length` must be an int >= 1; got {limit!r}."
            )
        assert refused(search, searchable, SOURCE, max_length=[3, 0, 3]) == (
            "`max_length`: expected lengths of at least 1; got 0."
        )
    assert "`seed`" in refused(sample, searchable, SOURCE, seed=np.int64(-5))


def test_numbers_may_be_those_of_numpy() -> None:
    searchable = own_parts.make().searchable()
    found = [
        beam_search(searchable, SOURCE, kind(2), kind(2), real(0.6), kind(5))
        for kind, real in ((int, float), (np.int64, np.float64))
    ]
    assert_close(found[0], found[1])
    assert len(vars(searchable)["_searches"]) == 1


def test_ids_that_would_wrap_round_are_refused() -> None:
    searchable = own_parts.make().searchable()
    with pytest.raises(ValueError, match="`source`: expected ids that fit into 32 bits; got 429"):
        search(searchable, SOURCE.astype(np.int64) + 2**32)
    for ids in (SOURCE.astype(np.int64) + 2**32, SOURCE.astype(np.int64) - 2**32):
        with pytest.raises(ValueError, match="`source`: expected ids in 0"):
            beam_search(small_model(), tf.constant(ids))


@pytest.mark.slow
def test_searches_with_many_models_bring_no_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = logging.getLogger("tensorflow")
    monkeypatch.setattr(logger, "filters", [])  # commands leave this warning out
    logger.addHandler(caplog.handler)
    try:
        for _ in range(6):
            search(own_parts.make().searchable())
    finally:
        logger.removeHandler(caplog.handler)
    assert caplog.text == ""


def test_float32_logits_of_a_narrower_decoder_stay_so() -> None:
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        own = own_parts.make(logits=keras.layers.Dense(VOCABULARY, dtype="float32"))
    finally:
        keras.config.set_dtype_policy("float32")
    searchable = own.searchable()
    assert searchable.output_map() is None
    mixed = tensor(normal(2, 1, 4), "bfloat16")
    logits = searchable.to_logits(mixed)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    assert_close(logits, own.logits(mixed))


def test_a_bare_functional_model_is_told_to_become_a_searchable() -> None:
    message = refused(beam_search, own_parts.make().trained, SOURCE)
    assert message.endswith("got Functional. Make a `Searchable` of it.")


@pytest.mark.parametrize("search", [beam_search, greedy_search, sample])
def test_ids_that_the_encoder_does_not_embed_are_refused(search: Any) -> None:
    searchable = own_parts.make().searchable()
    for wrong in (own_parts.SOURCE_VOCABULARY, -1):
        source = np.where(SOURCE == 5, wrong, SOURCE)
        message = refused(search, searchable, source, max_length=3)
        assert message == f"`source`: expected ids in 0..8; got {wrong}."


def test_ids_are_checked_where_an_embedding_takes_them() -> None:
    encoders = {
        "shifted first": lambda source: own_parts.outputs_alone(source - 40),
        "sequential": lambda source: (
            keras.Sequential([keras.Input((None,)), keras.layers.Embedding(4, WIDTH)])(source),
            (),
            None,
        ),
    }
    sizes = {
        name: own_parts.make(encoder).searchable().source_vocab_size
        for name, encoder in encoders.items()
    }
    assert sizes == {"shifted first": None, "sequential": 4}


@pytest.mark.parametrize("max_length", [None, 4])
@pytest.mark.parametrize("search", [beam_search, greedy_search])
def test_no_sources_have_no_targets(search: Any, max_length: int | None) -> None:
    searchable = own_parts.make().searchable()
    found = search(searchable, np.zeros((0, 3), np.int32), max_length=max_length)
    assert found.tokens.shape[0] == found.log_probs.shape[0] == 0


@pytest.mark.parametrize("search", [beam_search, greedy_search])
def test_empty_sources_may_have_no_columns(search: Any) -> None:
    searchable = own_parts.make().searchable()
    found, expected = (search(searchable, np.zeros((2, n), np.int32), max_length=4) for n in (0, 1))
    assert_close(found.log_probs, expected.log_probs)
    np.testing.assert_array_equal(as_array(found.tokens), as_array(expected.tokens))


def test_a_ragged_source_is_refused() -> None:
    tf = pytest.importorskip("tensorflow")
    source = tf.ragged.constant([[5, 3, 2], [4, 2]])
    assert refused(greedy_search, own_parts.make().searchable(), source) == (
        "`source`: expected rows of the same length, with padding."
    )


@pytest.fixture
def narrow_or_wide() -> Iterator[None]:
    before = keras.config.floatx()
    yield
    keras.config.set_floatx(before)


RULES = {"coverage_penalty": 0.4, "no_repeat_ngram": 2, "length_reward": 0.1, "max_length": STEPS}


@pytest.mark.parametrize("floatx", ["float64", *slow("bfloat16")])
@pytest.mark.parametrize("how", ["beam", "greedy", "sample", "XLA"])
def test_a_model_is_searched_alike_whatever_keras_floatx_is(
    how: str, floatx: str, narrow_or_wide: None
) -> None:
    del narrow_or_wide
    own = own_parts.make(attention=KMemoryAttention(3))
    model = small_model("k_memory") if how == "XLA" else own.searchable()
    source = np.minimum(SOURCE, 7)
    search = {
        "beam": lambda: beam_search(model, source, BEAM, N_BEST, 0.6, **RULES),
        "greedy": lambda: greedy_search(model, source, STEPS),
        "sample": lambda: sample(model, source, 3, top_p=0.8, seed=7, max_length=STEPS),
        "XLA": lambda: beam_search(model, source, BEAM, max_length=STEPS, jit_compile=True),
    }[how]
    expected = search()
    vars(model)["_searches"].clear()
    keras.config.set_floatx(floatx)
    found = search()
    np.testing.assert_array_equal(as_array(found.tokens), as_array(expected.tokens))
    assert_close(found.log_probs, expected.log_probs)


def test_xla_searches_one_source_without_cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    searchable, seen = own_parts.make().searchable(), []
    encode = type(searchable.encoder).__call__

    def watched(model: Any, *given: Any, **options: Any) -> Any:
        seen.extend(one.use_cudnn for one in model.layers if hasattr(one, "use_cudnn"))
        return encode(model, *given, **options)

    monkeypatch.setattr(type(searchable.encoder), "__call__", watched)
    for jit_compile, expected in ((True, False), (False, "auto")):
        seen.clear()
        beam_search(searchable, SOURCE[:1], 2, max_length=2, jit_compile=jit_compile)
        assert seen and set(seen) == {expected}


def test_every_id_can_be_banned_whatever_roles_ids_share() -> None:
    start_id, end_id, pad_id = IDS["one for all three"]
    own = own_parts.make(own_parts.outputs_and_mask)
    searchable = own.searchable(start_id=start_id, end_id=end_id, pad_id=pad_id)
    banned = [token for token in range(searchable.vocab_size) if token != end_id]
    assert {searchable.ids[token] for token in banned_tokens(searchable, banned)} == set(banned)


@pytest.mark.parametrize("search", [beam_search, greedy_search, sample])
def test_three_graphs_serve_all_shapes(search: Any) -> None:
    model = own_parts.make().searchable()
    for batch, length in ((3, 5), (2, 5), (3, 4), (8, 9), (3, 5)):
        search(model, np.full((batch, length), 3, np.int32))
    (_, first), others = vars(model)["_searches"].values()
    assert [graph.experimental_get_tracing_count() for graph in (first, others)] == [1, 1]
    search(model, np.full((1, 4), 3, np.int32))
    assert len(vars(model)["_searches"]) == 3


@pytest.mark.parametrize("make", [lambda model: model, lambda model: Ensemble([model, model])])
def test_a_copy_is_refused(make: Any) -> None:
    model = make(own_parts.make().searchable())
    for a_copy in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=f"`{type(model).__name__}` cannot be copied or pickl"):
            a_copy(model)

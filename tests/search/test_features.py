"""Searches with sources of features in place of ids: speech, images, vectors."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from seq2seq_memattn.attention.additive import BahdanauAttention
from seq2seq_memattn.attention.multiplicative import LuongAttention
from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.layers.attention_decoder import AttentionDecoder
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.search.beam import beam_search
from seq2seq_memattn.search.ensemble import Ensemble
from seq2seq_memattn.search.functional_parts import parts_of
from seq2seq_memattn.search.greedy import greedy_search
from seq2seq_memattn.search.sample import sample
from seq2seq_memattn.search.searchable import Searchable
from seq2seq_memattn.vocabulary import PAD_ID
from tests.errors import refused
from tests.running import run_python
from tests.search.own_parts import rescored
from tests.tolerances import as_array, assert_close

VOCABULARY, WIDTH, UNITS, STEPS = 7, 4, 8, 6

# For each kind of source: the shape of one, and an encoder.
ENCODERS: dict[str, tuple[tuple[int | None, ...], Callable[[], list[Any]]]] = {
    "speech": (
        (None, 5),
        lambda: [keras.layers.Masking(), keras.layers.GRU(6, return_sequences=True)],
    ),
    "images": ((8, 8, 3), lambda: [keras.layers.Conv2D(4, 3), keras.layers.Reshape((-1, 4))]),
    "vectors": ((12,), lambda: [keras.layers.Dense(12), keras.layers.Reshape((3, 4))]),
}
KINDS = pytest.mark.parametrize("kind", list(ENCODERS))


def model_of(kind: str) -> keras.Model:
    shape, layers = ENCODERS[kind]
    source, target = keras.Input(shape), keras.Input((None,), dtype="int32")
    encoded = source
    for layer in layers():
        encoded = layer(encoded)
    embedded = keras.layers.Embedding(VOCABULARY, WIDTH)(target)
    decoder = AttentionDecoder(keras.layers.GRUCell(UNITS), BahdanauAttention(UNITS))
    return keras.Model([source, target], keras.layers.Dense(VOCABULARY)(decoder(embedded, encoded)))


def sources_of(kind: str, batch: int = 3, length: int = 6) -> Any:
    shape = [length if size is None else size for size in ENCODERS[kind][0]]
    return np.random.default_rng(1).normal(size=(batch, *shape))  # float64, as NumPy makes them


def assert_found_as_by(model: keras.Model, source: Any, found: Any) -> None:
    """Checks the log-probabilities of targets [batch, n, length] against the model's own."""
    tokens = as_array(found.tokens)
    log_probs = rescored(model, source.astype("float32"), tokens) * (tokens != PAD_ID)
    assert_close(found.log_probs, log_probs.sum(axis=2))


@KINDS
@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
def test_log_probabilities_are_those_of_the_model(kind: str, jit_compile: bool) -> None:
    model = model_of(kind)
    searchable = Searchable.from_model(model)
    for batch in (3, 1) if jit_compile else (3, 1, 2, 5):
        source = sources_of(kind, batch)
        found = beam_search(
            searchable,
            source,
            4,
            2,
            max_length=STEPS,
            return_alignments=True,
            jit_compile=jit_compile,
        )
        assert_found_as_by(model, source, found)
        taken = np.arange(STEPS) < as_array(found.steps)[:, :, None]
        assert_close(as_array(found.alignments).sum(axis=3), taken.astype("float32"))


def test_frames_of_padding_are_not_read() -> None:
    searchable, source = Searchable.from_model(model_of("speech")), sources_of("speech")
    padded = np.pad(source, [(0, 0), (0, 4), (0, 0)])
    found, same = (greedy_search(searchable, x, max_length=STEPS) for x in (source, padded))
    assert_close(found.log_probs, same.log_probs)


def test_without_a_mask_all_positions_are_read() -> None:
    """A layer's input shape is unknown, so the source decides that it has features."""
    _, *others = parts_of(model_of("images"))
    encode = keras.layers.Reshape((-1, 4))
    encode.build((None, 5, 2, 2))
    searchable = Searchable(encode, *others)
    zeros = np.zeros((2, 5, 2, 2), "float32")
    found = beam_search(searchable, zeros, max_length=2, return_alignments=True)
    assert_close(as_array(found.alignments)[:, 0, 0], np.full((2, 5), 0.2))


@KINDS
def test_ensembles_and_samples(kind: str) -> None:
    model, source = model_of(kind), sources_of(kind)
    searchable = Searchable.from_model(model)
    one, both = (
        greedy_search(each, source, max_length=STEPS)
        for each in (searchable, Ensemble([searchable, Searchable.from_model(model)]))
    )
    np.testing.assert_array_equal(as_array(one.tokens), as_array(both.tokens))
    drawn = sample(searchable, source, num_samples=3, seed=1, max_length=STEPS)
    assert_found_as_by(model, source, drawn)


def test_three_graphs_serve_all_lengths() -> None:
    searchable = Searchable.from_model(model_of("speech"))
    for batch, length in ((3, 5), (2, 5), (3, 4), (8, 9), (1, 3), (1, 7)):
        greedy_search(searchable, sources_of("speech", batch, length), max_length=STEPS)
    assert len(vars(searchable)["_searches"]) == 3


def test_pixels_may_be_bytes_or_bits() -> None:
    searchable = Searchable.from_model(model_of("images"))
    pixels = np.random.default_rng(2).integers(0, 3, size=(2, 8, 8, 3), dtype=np.uint8)
    for given in (pixels, pixels > 1):
        found, same = (greedy_search(searchable, x, max_length=4) for x in (given, given * 1.0))
        assert_close(found.log_probs, same.log_probs)
    wider = beam_search(searchable, pixels + 1, 4, max_length=4)
    assert not np.allclose(as_array(wider.log_probs)[:, 0], as_array(same.log_probs))


def test_a_sequential_encoder_takes_other_lengths_than_that_of_its_first_call() -> None:
    _, *others = parts_of(model_of("speech"))
    encode = keras.Sequential([keras.layers.Masking(), keras.layers.GRU(6, return_sequences=True)])
    encode(np.zeros((3, 6, 5), "float32"))
    searchable = Searchable(encode, *others)
    source = sources_of("speech", 3, 9)
    found = greedy_search(searchable, source, max_length=STEPS)
    alone = greedy_search(searchable, source[1:2], max_length=STEPS)
    assert_close(found.log_probs[1:2], alone.log_probs)


class OfPixels(keras.layers.Layer):
    """An encoder that declares no input and needs to know the sizes of its images."""

    def call(self, x: Any) -> Any:
        _, height, width, channels = x.shape
        return keras.ops.reshape(x, (-1, height * width, channels))


def test_an_encoder_may_need_sizes_that_it_does_not_declare() -> None:
    _, *others = parts_of(model_of("speech"))
    encode = OfPixels()
    encode(np.zeros((1, 4, 4, 6), "float32"))
    searchable = Searchable(encode, *others)
    images = np.random.default_rng(1).normal(size=(5, 4, 4, 6))
    whole = greedy_search(searchable, images, max_length=STEPS)
    for batch in (2, 1, 4):
        found = greedy_search(searchable, images[:batch], max_length=STEPS)
        assert_close(found.log_probs, whole.log_probs[:batch])
    assert len(vars(searchable)["_searches"]) == 3


def test_a_sequential_encoder_may_need_the_sizes_of_its_input() -> None:
    _, *others = parts_of(model_of("speech"))
    searchable = Searchable(keras.Sequential([keras.Input((4, 4, 6)), OfPixels()]), *others)
    images = np.random.default_rng(1).normal(size=(5, 4, 4, 6))
    whole = greedy_search(searchable, images, max_length=STEPS)
    found = greedy_search(searchable, images[:2], max_length=STEPS)
    assert_close(found.log_probs, whole.log_probs[:2])
    assert refused(greedy_search, searchable, images[:, :3], 3) == (
        "`source`: expected shape [batch, 4, 4, 6]; got [5, 3, 4, 6]."
    )


def test_an_own_attribute_named_inputs_is_not_taken_for_that_of_keras() -> None:
    _, *others = parts_of(model_of("speech"))
    encode = OfPixels()
    encode.inputs = [encode.call]
    encode(np.zeros((1, 4, 4, 6), "float32"))
    assert Searchable(encode, *others).source_input is None


def test_an_embedding_may_read_sources_with_more_axes() -> None:
    """Words as rows of characters."""
    source, target = keras.Input((None, 4), dtype="int32"), keras.Input((None,), dtype="int32")
    embedded = keras.layers.Embedding(9, 3)(source)
    encoded = keras.layers.TimeDistributed(keras.layers.GRU(6))(embedded)
    read = keras.layers.Embedding(VOCABULARY, WIDTH)(target)
    decoder = AttentionDecoder(keras.layers.GRUCell(UNITS), BahdanauAttention(UNITS))
    model = keras.Model([source, target], keras.layers.Dense(VOCABULARY)(decoder(read, encoded)))
    words = np.random.default_rng(1).integers(0, 9, size=(3, 5, 4))
    searchable = Searchable.from_model(model)
    found = beam_search(searchable, words, 3, 2, max_length=STEPS)
    tokens = as_array(found.tokens)
    log_probs = rescored(model, words, tokens) * (tokens != PAD_ID)
    assert_close(found.log_probs, log_probs.sum(axis=2))
    assert refused(greedy_search, searchable, words + 1, 3) == (
        "`source`: expected ids in 0..8; got 9."
    )


def test_more_outputs_than_the_attention_can_read_are_refused() -> None:
    source, target = keras.Input((None, 6)), keras.Input((None,), dtype="int32")
    read = keras.layers.Embedding(VOCABULARY, WIDTH)(target)
    location = LuongAttention("location", max_source_length=5)
    decoder = AttentionDecoder(keras.layers.GRUCell(UNITS), location)
    halved = keras.layers.AveragePooling1D(2)(source)
    model = keras.Model([source, target], keras.layers.Dense(VOCABULARY)(decoder(read, halved)))
    searchable = Searchable.from_model(model)
    frames = np.ones((2, 12, 6))
    assert greedy_search(searchable, frames[:, :11], max_length=3).tokens.shape == (2, 3)
    _, *others = parts_of(model)
    halve = keras.Sequential([keras.layers.AveragePooling1D(2)])
    halve(frames[:, :6])
    for model in (searchable, Searchable(halve, *others), Ensemble([searchable, searchable])):
        assert refused(greedy_search, model, frames, 3) == (
            "`source`: expected at most 5 encoder outputs, as the attention's `max_source_length` "
            "demands; got sources of shape [12, 6]."
        )


def test_models_of_an_ensemble_convert_features_themselves() -> None:
    """One encoder reads bytes, the other floats."""
    first = Searchable.from_model(model_of("images"))
    _, *others = parts_of(model_of("images"))
    source = keras.Input((8, 8, 3), dtype="uint8")
    scaled = keras.layers.Rescaling(1.0)(source)
    pixels = keras.Model(source, keras.layers.Reshape((-1, 4))(keras.layers.Conv2D(4, 3)(scaled)))
    second = Searchable(pixels, *others)
    images = sources_of("images")
    found, same = (
        greedy_search(Ensemble(pair), images, max_length=STEPS)
        for pair in ([first, second], [second, first])
    )
    assert_close(found.log_probs, same.log_probs)


def test_wrong_features_are_refused() -> None:
    searchable = Searchable.from_model(model_of("speech"))

    def error(source: Any, **options: Any) -> str:
        return refused(beam_search, searchable, source, **{"max_length": 3, **options})

    source = sources_of("speech")
    shape = "`source`: expected shape [batch, 1 or more, 5]; got "
    assert error(source[:, :, :2]) == f"{shape}[3, 6, 2]."
    assert error([[3, 4]]) == f"{shape}[1, 2]."
    assert error(source[:, :0]) == f"{shape}[3, 0, 5]."
    assert error(np.full((1, 2, 5), "a")).startswith("`source`: expected numbers; got str")
    assert error(source, max_length=None).startswith("`max_length`: expected a number of steps, ")
    coverage = error(source, coverage_penalty=0.2)
    assert coverage == "`coverage_penalty`: expected sources of ids; got features."
    compiled = error(source, coverage_penalty=0.2, jit_compile=True)
    assert compiled == coverage


@KINDS
def test_no_sources_have_no_targets(kind: str) -> None:
    searchable = Searchable.from_model(model_of(kind))
    assert greedy_search(searchable, sources_of(kind, 0), max_length=4).tokens.shape == (0, 4)


def test_features_are_refused_by_a_model_of_ids() -> None:
    model = Seq2Seq(ModelConfig(source_vocab_size=9, target_vocab_size=9))
    words = np.zeros((2, 5, 4), np.int32)
    message = "`source`: expected shape [batch, source_length]; got [2, 5, 4] of int32."
    assert refused(greedy_search, model, words, 3) == message


@pytest.mark.parametrize(("kind", "sizes"), [("images", "8, 8, 3"), ("vectors", "12")])
def test_texts_cannot_become_features(kind: str, sizes: str, tmp_path: Any) -> None:
    from seq2seq_memattn.serving.export.export_searchable import export_searchable

    searchable = Searchable.from_model(model_of(kind))
    assert refused(export_searchable, searchable, tmp_path / "exported") == (
        "`searchable`: expected an encoder of source ids, which texts become; got one of features, "
        f"[batch, {sizes}]. `keras.export.ExportArchive` exports its searches."
    )
    assert not (tmp_path / "exported").exists()


JAX = """
import os, sys
os.environ["KERAS_BACKEND"] = "jax"
sys.modules["tensorflow"] = None
from tests.search import test_features as tests
for kind in tests.ENCODERS:
    tests.test_log_probabilities_are_those_of_the_model(kind, False)
    tests.test_ensembles_and_samples(kind)
tests.test_frames_of_padding_are_not_read()
print("searched")
"""


def test_features_on_jax() -> None:
    done = run_python("-c", JAX)
    assert done.stdout == b"searched\n", done.stderr

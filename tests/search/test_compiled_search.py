from typing import Any

import keras
import numpy as np
import pytest

from seq2seq_memattn.search import chunks, compiled_search
from seq2seq_memattn.search.beam import beam_search
from seq2seq_memattn.search.compiled_search import CompiledSearch
from seq2seq_memattn.search.options import Sampling, SearchOptions, samples
from seq2seq_memattn.search.sample import sample
from seq2seq_memattn.vocabulary import END_ID
from tests.marks import slow
from tests.search.models import (
    assert_same_search,
    one_quick_attention,
    padded,
    small_model,
    sources_of,
    with_rounded_products,
)
from tests.tolerances import as_array, assert_close

# With chunks of 2 steps, some sentences are finished after each chunk.
LIMITS = np.array([9, 1, 3, 7, 2, 5, 2], np.int32)
SOURCES = sources_of(6, 0, 3, 8, 1, 2, 5)

# Other tests use the plain graph already, so here XLA is the quick case.
xla_quickly = pytest.mark.parametrize("jit_compile", [True, *slow(False)])


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_search, "CHUNK", 2)
    monkeypatch.setattr(chunks, "DROPPING_CHUNK", 2)


@one_quick_attention
def test_a_search_in_chunks_equals_one_in_a_single_graph(attention: str) -> None:
    model, source = small_model(attention), padded(SOURCES)
    search = CompiledSearch(model, SearchOptions(4, 3, 0.6), len(SOURCES))
    assert_same_search(search(source, LIMITS), beam_search(model, source, 4, 3, 0.6, LIMITS))


@pytest.mark.slow
@one_quick_attention
def test_xla_finds_the_same_in_batches_of_its_own_sizes(attention: str) -> None:
    model = small_model(attention)
    search = CompiledSearch(model, SearchOptions(4, 3, 0.6), 8, jit_compile=True)
    for chosen in (slice(None), slice(2, 5)):
        source, limits = padded(SOURCES[chosen]), LIMITS[chosen]
        assert_same_search(search(source, limits), beam_search(model, source, 4, 3, 0.6, limits))


@pytest.mark.parametrize("jit_compile", [False, *slow(True)])
def test_rules_hold_while_finished_sentences_leave_the_batch(
    jit_compile: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "WORTH", 1.0)  # each finished sentence leaves at once
    model, source = small_model("k_memory", vocab_size=9), padded(SOURCES)
    rules = {"length_reward": 0.3, "coverage_penalty": 0.4, "no_repeat_ngram": 2}
    least = LIMITS // 2
    prefix = np.array([[3, 4], [0, 0], [0, 0], [6, 6], [7, 0], [4, 3], [0, 0]], np.int32)
    options = SearchOptions(4, 3, 0.6, **rules, banned=(8,))
    search = CompiledSearch(model, options, len(SOURCES), jit_compile=jit_compile)
    together = keras.tree.map_structure(as_array, search(source, LIMITS, least, prefix))
    for row, limit in enumerate(LIMITS):
        one = slice(row, row + 1)
        alone = beam_search(
            *(model, source[one], 4, 3, 0.6, LIMITS[one]),
            **{**rules, "min_length": least[one], "banned": [8], "prefix": prefix[one]},
        )
        found = keras.tree.map_structure(lambda array, one=one: array[one], together)
        assert_same_search(found._replace(tokens=found.tokens[:, :, :limit]), alone)


@pytest.mark.slow
@xla_quickly
@one_quick_attention
def test_a_sentence_alone_is_searched_in_one_graph(
    attention: str, jit_compile: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_search, "ALONE", 4)
    model = small_model(attention)
    search = CompiledSearch(model, SearchOptions(4, 3, 0.6), 1, True, jit_compile)
    monkeypatch.setattr(search, "_chunk", None)
    for chosen in (0, 1, 4, 3):  # with 9, 1, 2 and 7 steps
        source, limits = padded(SOURCES[chosen : chosen + 1]), LIMITS[chosen : chosen + 1]
        found = search(source, limits)
        expected = beam_search(model, source, 4, 3, 0.6, limits, return_alignments=True)
        assert_same_search(found, expected)
        assert found.tokens.shape == (1, 3, limits[0])
        assert_close(found.alignments, as_array(expected.alignments))


def test_sentences_that_are_done_leave_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model()
    bias = np.array(model.logits.bias)
    bias[END_ID] = -1e9  # every sentence goes to its limit
    model.logits.bias.assign(bias)
    search = CompiledSearch(model, SearchOptions(2), 7, jit_compile=True)
    sizes = []
    chunk = search._chunk

    def counted(*arguments: Any) -> Any:
        sizes.append(len(arguments[5].limits))
        return chunk(*arguments)

    monkeypatch.setattr(search, "_chunk", counted)
    found = search(padded(SOURCES), LIMITS)
    assert found.lengths[:, 0].tolist() == LIMITS.tolist()
    # After 2, 4, 6, 8 and 10 steps, 3, 4, 5, 6 and 7 sentences are done.
    assert sizes == [7, 4, 4, 2, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attention", "jit_compile"),
    [
        ("k_memory", False),
        ("k_memory", True),
        ("bahdanau", True),
    ],
)
def test_alignments_are_those_of_the_whole_source(attention: str, jit_compile: bool) -> None:
    model, source = small_model(attention), padded(SOURCES)
    search = CompiledSearch(model, SearchOptions(4, 2), 7, True, jit_compile)
    found = search(source, LIMITS)
    expected = beam_search(model, source, 4, 2, 0.0, LIMITS, return_alignments=True)
    assert_same_search(found, expected)
    for name in ("alignments", "scores", "positions_scored"):
        assert_close(getattr(found, name), as_array(getattr(expected, name)))


@pytest.mark.parametrize("attention", ["k_memory", *slow("bahdanau")])
def test_folding_changes_rounding_only(attention: str) -> None:
    model, source = small_model(attention), padded(SOURCES)
    found = [
        CompiledSearch(model, SearchOptions(4, 2), 7, folded=folded)(source, LIMITS)
        for folded in (False, True)
    ]
    assert_same_search(found[0], found[1])


def test_weights_are_read_on_demand() -> None:
    model, source = small_model(), padded(SOURCES)
    search = CompiledSearch(model, SearchOptions(2), 7)
    before = search(source, LIMITS)
    embeddings = model.target_embedding.embeddings
    embeddings.assign(as_array(embeddings)[::-1].astype(np.float32))
    assert_same_search(search(source, LIMITS), before)  # uses the table of the old embeddings
    search.update_weights()
    assert_same_search(search(source, LIMITS), beam_search(model, source, 2, 1, 0.0, LIMITS))
    assert not np.allclose(search(source, LIMITS).log_probs, before.log_probs)


@pytest.mark.parametrize("jit_compile", [False, *slow(True)], ids=["plain", "xla"])
@pytest.mark.parametrize("attention", ["k_memory", *slow("bahdanau", "flexible_window", "none")])
def test_products_in_bfloat16_change_log_probs_by_their_rounding_only(
    attention: str, jit_compile: bool
) -> None:
    model, source = small_model(attention), padded(SOURCES)
    exact = CompiledSearch(model, SearchOptions(4, 2), 7)(source, LIMITS)
    search = CompiledSearch(
        with_rounded_products(model), SearchOptions(4, 2), 7, jit_compile=jit_compile
    )
    rounded = search(source, LIMITS)
    np.testing.assert_allclose(rounded.log_probs, exact.log_probs, rtol=2e-2, atol=2e-2)
    assert (rounded.log_probs != exact.log_probs).any()


@pytest.mark.slow
@xla_quickly
@one_quick_attention
def test_samples_are_those_of_the_sentences_seeds(attention: str, jit_compile: bool) -> None:
    model = small_model(attention)
    sampling = Sampling(temperature=1.5, top_p=0.9)
    search = CompiledSearch(model, samples(3, sampling), 8, jit_compile=jit_compile)
    expected = sample(model, padded(SOURCES), 3, 1.5, 0, 0.9, seed=4, max_length=LIMITS)
    seeds = np.array([[4, row] for row in range(len(SOURCES))], np.uint32)
    for chosen in (slice(None), [6, 0, 3]):
        source = padded([SOURCES[i] for i in np.arange(7)[chosen]])
        found = search(source, LIMITS[chosen], seeds=seeds[chosen])
        steps = LIMITS[chosen].max()
        tokens = as_array(expected.tokens)[chosen]
        np.testing.assert_array_equal(found.tokens, tokens[:, :, :steps])
        assert_close(found.log_probs, as_array(expected.log_probs)[chosen])
        assert_close(found.normalised_log_probs, found.log_probs)


@pytest.mark.parametrize("jit_compile", [False, *slow(True)])
def test_a_sentence_alone_is_sampled_in_one_graph_with_its_alignments(jit_compile: bool) -> None:
    model, options = small_model(), samples(4, Sampling(top_k=3))
    search = CompiledSearch(model, options, 1, True, jit_compile)
    found = search(padded(SOURCES[:1]), LIMITS[:1], seeds=np.array([[4, 0]], np.uint32))
    expected = sample(model, padded(SOURCES[:1]), 4, top_k=3, seed=4, max_length=int(LIMITS[0]))
    np.testing.assert_array_equal(found.tokens, as_array(expected.tokens))
    assert_close(found.log_probs, as_array(expected.log_probs))
    steps = found.lengths + found.is_finished
    is_taken = np.arange(found.tokens.shape[2]) < steps[:, :, None]
    assert_close(found.alignments.sum(axis=3), 1.0 * is_taken)

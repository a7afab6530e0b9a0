"""Searches with `jit_compile` find what those without it find."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from seq2seq_memattn.search.beam import beam_search
from seq2seq_memattn.search.ensemble import Ensemble
from seq2seq_memattn.search.greedy import greedy_search
from seq2seq_memattn.search.sample import sample
from tests.errors import refused
from tests.marks import slow
from tests.search import own_parts
from tests.search.models import assert_same_search, padded, small_model, sources_of
from tests.search.own_parts import Stepped
from tests.tolerances import as_array, assert_close

SOURCE = padded(sources_of(6, 0, 3))
RULES: dict[str, Any] = {
    "min_length": [0, 2, 3],
    "length_reward": 0.2,
    "coverage_penalty": 0.3,
    "no_repeat_ngram": 2,
    "banned": [5],
    "prefix": [[4, 3], [0, 0], [3, 0]],
}


def models() -> dict[str, Any]:
    return {
        "k_memory": small_model("k_memory"),
        "bahdanau": small_model("bahdanau"),
        "searchable": own_parts.make(own_parts.all_three).searchable(pad_id=0),
        "ensemble": Ensemble([small_model("k_memory"), small_model("bahdanau", seed=2)]),
    }


@pytest.mark.parametrize("name", ["searchable", *slow("k_memory", "bahdanau", "ensemble")])
def test_xla_finds_the_same_targets_and_alignments(name: str) -> None:
    model = models()[name]
    for source in (SOURCE, SOURCE[:2, :4], SOURCE[:1]):
        found, expected = (
            beam_search(model, source, 3, 2, 0.6, return_alignments=True, jit_compile=jit)
            for jit in (True, False)
        )
        assert_same_search(found, expected)
        assert_close(as_array(found.alignments), as_array(expected.alignments))
        assert isinstance(found.scores, tuple) == isinstance(expected.scores, tuple)
        if not isinstance(found.scores, tuple):
            assert_close(as_array(found.scores), as_array(expected.scores))
        assert found.memory == ()
        assert tf.is_tensor(found.tokens)


def test_xla_keeps_the_rules() -> None:
    model = small_model("bahdanau")
    for limits in (None, 6, [7, 3, 5]):
        found, expected = (
            beam_search(model, SOURCE, 4, 3, max_length=limits, jit_compile=jit, **RULES)
            for jit in (True, False)
        )
        assert_same_search(found, expected)


@pytest.mark.slow
def test_greedy_search_and_sampling_with_xla() -> None:
    model = small_model("k_memory")
    found, expected = (greedy_search(model, SOURCE, jit_compile=jit) for jit in (True, False))
    np.testing.assert_array_equal(as_array(found.tokens), as_array(expected.tokens))
    found, expected = (
        sample(model, SOURCE, 3, temperature=1.5, seed=7, jit_compile=jit) for jit in (True, False)
    )
    np.testing.assert_array_equal(as_array(found.tokens), as_array(expected.tokens))


def test_weights_are_read_anew() -> None:
    model = small_model("k_memory")
    first = beam_search(model, SOURCE, 2, jit_compile=True)
    model.logits.bias.assign(model.logits.bias[::-1])
    second = beam_search(model, SOURCE, 2, jit_compile=True)
    assert_same_search(second, beam_search(model, SOURCE, 2))
    assert not np.array_equal(as_array(first.log_probs), as_array(second.log_probs))


def test_batches_after_a_small_one_have_few_sizes() -> None:
    model = small_model("k_memory")
    for batch in (3, 40, 37, 21, 5):
        beam_search(model, np.full((batch, 4), 3, np.int32), 2, max_length=3, jit_compile=True)
    (search,) = vars(model)["_searches"].values()
    assert {search._size(count) for count in range(1, 50)} == {1, 2, 4, 8, 16, 32, 64}


def test_no_sources_have_no_targets() -> None:
    found = beam_search(small_model("k_memory"), np.zeros((0, 3), np.int32), 2, jit_compile=True)
    assert found.tokens.shape[0] == 0


def test_models_and_places_that_cannot_be_compiled_are_refused() -> None:
    other = Stepped(own_parts.make())
    assert refused(beam_search, other, SOURCE, jit_compile=True) == (
        "`jit_compile`: expected the model to be one of Seq2Seq, Searchable, Ensemble; got Stepped."
    )
    model = small_model("k_memory")

    @tf.function(autograph=False)
    def inside() -> Any:
        return beam_search(model, SOURCE, 2, jit_compile=True).tokens

    assert "expected a call outside graphs" in refused(inside)

from typing import Any

import keras
import numpy as np
import pytest

from seq2seq_memattn.search.greedy import GreedyResult, greedy_search
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID, SymbolVocabulary
from tests.inputs import run
from tests.reference import beam_search as reference
from tests.search.models import (
    PrefixModel,
    one_quick_attention,
    padded,
    random_tables,
    scripted,
    small_model,
    sources_of,
    teacher_forced,
)
from tests.tolerances import as_array, assert_close

LIMITS = np.array([6, 1, 5, 6, 3, 6, 2, 6, 4] * 4)
END_BIASES = np.repeat([-np.inf, -3.0, 0.0, 3.0], 9)
BATCH = len(LIMITS)


def search(model: PrefixModel, *arguments: Any) -> GreedyResult:
    source = np.full([len(model.tables), 1], END_ID, np.int32)
    return keras.tree.map_structure(as_array, greedy_search(model, source, *arguments))


def test_greedy_search_equals_the_reference() -> None:
    model = PrefixModel(random_tables(1, END_BIASES))
    result = search(model, LIMITS)
    assert model.num_steps == 6
    for row, limit in enumerate(LIMITS):
        expected = reference.greedy_search(model.log_probs_fn(row), START_ID, END_ID, int(limit))
        end = [END_ID] if expected.is_finished else []
        written = [*expected.tokens, *end]
        assert result.tokens[row, : len(written)].tolist() == written
        assert (result.tokens[row, len(written) :] == PAD_ID).all()
        assert result.lengths[row] == expected.length
        assert result.is_finished[row] == expected.is_finished
        assert as_array(result.steps)[row] == len(written)
        assert_close(result.log_probs[row], np.array(expected.log_prob))
    assert 0.2 < result.is_finished.mean() < 0.8


@one_quick_attention
def test_each_token_is_the_likeliest_one_under_teacher_forcing(attention: str) -> None:
    model, source = small_model(attention), padded(sources_of(6, 0, 3, 8))
    found = keras.tree.map_structure(as_array, greedy_search(model, source, 7))
    starts = np.full([len(source), 1], START_ID, np.int32)
    inputs = np.concatenate([starts, found.tokens[:, :-1]], axis=1)
    logits = as_array(model({"source": source, "target_inputs": inputs}))
    logits[:, :, [PAD_ID, START_ID]] = -np.inf  # never written
    for tokens, expected, length in zip(found.tokens, logits, found.lengths, strict=True):
        written = length + 1 if length < 7 else 7
        np.testing.assert_array_equal(tokens[:written], expected.argmax(axis=1)[:written])


def test_padding_and_start_tokens_are_not_written() -> None:
    model = scripted(
        {
            (): {PAD_ID: 0.5, START_ID: 0.3, 3: 0.2},
            (3,): {START_ID: 0.5, PAD_ID: 0.4, END_ID: 0.1},
        },
        vocab_size=4,
    )
    result = search(model, 5)
    assert result.tokens.tolist() == [[3, END_ID, PAD_ID, PAD_ID, PAD_ID]]
    assert result.lengths.tolist() == [1]
    assert result.is_finished.tolist() == [True]
    assert_close(np.exp(result.log_probs), [0.02])


def test_a_script_gives_the_likeliest_symbol_at_each_step() -> None:
    model = scripted(
        {
            (): {3: 0.6, 4: 0.4},
            (3,): {END_ID: 0.4, 3: 0.25, 4: 0.35},
            (4,): {END_ID: 1.0},
        },
        vocab_size=5,
    )
    result = search(model)
    assert SymbolVocabulary(["a", "b"]).decode(result.tokens[0]) == "a"
    assert_close(np.exp(result.log_probs), [0.24])


def test_without_a_limit_a_sentence_takes_twice_its_source_and_ten_more() -> None:
    endless = PrefixModel(random_tables(3, [-np.inf, -np.inf]))
    result = greedy_search(endless, padded(sources_of(4, 0)))
    assert as_array(result.tokens).shape[-1] == endless.num_steps == 2 * 5 + 10
    assert as_array(result.lengths).tolist() == [20, 12]
    assert not as_array(result.is_finished).any()


def test_the_search_stops_when_every_sentence_has_ended() -> None:
    model = scripted({(): {3: 1.0}, (3,): {3: 1.0}, (3, 3): {END_ID: 1.0}}, vocab_size=4)
    search(model, 50)
    assert model.num_steps == 3


def test_log_probs_are_those_of_teacher_forcing() -> None:
    model, sources = small_model(), sources_of(6, 3, 0)
    result = keras.tree.map_structure(as_array, greedy_search(model, padded(sources), 4))
    for row, source in enumerate(sources):
        target = result.tokens[row, : result.lengths[row] + result.is_finished[row]].tolist()
        expected = teacher_forced(model, padded([source])[0], [target])
        assert_close(result.log_probs[row], expected[0])


@pytest.mark.slow
def test_eager_graph_and_xla_agree() -> None:
    model, source = small_model(), padded(sources_of(6, 0, 3))

    def find(source: Any) -> GreedyResult:
        return greedy_search(model, source, 5)

    eager = run("eager", find, source)
    for mode in ("graph", "xla"):
        result = run(mode, find, source)
        np.testing.assert_array_equal(result.tokens, eager.tokens)
        np.testing.assert_array_equal(result.lengths, eager.lengths)
        assert_close(result.log_probs, as_array(eager.log_probs))

from typing import Any

import pytest
import tensorflow as tf

from seq2seq_memattn.search import chunks, in_graph
from seq2seq_memattn.search.chunks import Compaction, drop_done, keep_all
from seq2seq_memattn.search.in_graph import BeamResult, search_in_graph
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.search.prepare import prepare
from seq2seq_memattn.search.rules import Rules, SourceRules, step_limits
from tests.marks import quick, slow
from tests.search.models import (
    assert_same_search,
    one_quick_attention,
    padded,
    small_model,
    sources_of,
)

SOURCES = sources_of(6, 0, 3, 8, 1, 2, 5)


POLICIES = {"keep_all": keep_all, "at_once": lambda: keep_all(32), "drop_done": drop_done}


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "DROPPING_CHUNK", 2)
    monkeypatch.setattr(chunks, "KEPT_CHUNK", 2)


def searched(model: Any, source: Any, max_length: Any, compaction: Compaction) -> BeamResult:
    decoding = prepare(model, 4)
    limits, num_steps = step_limits(source, max_length)
    rules = Rules(SearchOptions(4, 3, 0.6), SourceRules(limits[:, None]))
    started = decoding.start(source, 4)
    return search_in_graph(decoding, *started, rules, num_steps, compaction)


@pytest.mark.parametrize("max_length", [None, *slow(5)])
@pytest.mark.parametrize("policy", quick(POLICIES, "drop_done"))
@one_quick_attention
def test_policies_find_the_same_in_a_graph_of_any_batch(
    attention: str, policy: str, max_length: int | None
) -> None:
    model, source = small_model(attention), padded(SOURCES)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)], autograph=False)
    def search(source: Any) -> Any:
        return searched(model, source, max_length, POLICIES[policy]())

    assert_same_search(search(source), searched(model, source, max_length, keep_all()))


def test_sentences_that_are_done_leave_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    extend_beam = in_graph.extend_beam

    def watched(model: Any, memory: Any, state: Any, last: Any, *more: Any) -> Any:
        sizes.append(len(last.tokens))
        return extend_beam(model, memory, state, last, *more)

    # The limits are 10, 26 and 16 steps, in chunks of 2.
    model, source = small_model(), tf.constant(padded(sources_of(0, 8, 3)))
    expected = searched(model, source, None, keep_all())
    monkeypatch.setattr(in_graph, "extend_beam", watched)
    assert_same_search(searched(model, source, None, drop_done()), expected)
    assert sizes[0] == 3
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 3

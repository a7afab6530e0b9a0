from typing import Any

import pytest
import tensorflow as tf

from seq2seq_memattn.search import compacting
from seq2seq_memattn.search.beam import beam_search
from seq2seq_memattn.search.compacting import compacting_beam_search
from seq2seq_memattn.search.prepared import for_decoding
from tests.search.models import (
    assert_same_search,
    one_quick_attention,
    padded,
    small_model,
    sources_of,
)
from tests.tolerances import as_array

SOURCES = sources_of(6, 0, 3, 8, 1, 2, 5)


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compacting, "CHUNK", 2)


def searched(model: Any, source: Any, max_length: Any) -> Any:
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)], autograph=False)
    def search(source: Any) -> Any:
        decoding = for_decoding(model, 4)
        started = decoding.start(source, 4)
        return compacting_beam_search(decoding, source, *started, 4, 3, 0.6, max_length)

    return search(source)


def assert_the_same(attention: str, max_length: int | None) -> None:
    model, source = small_model(attention), padded(SOURCES)
    found = searched(model, source, max_length)
    assert_same_search(found, beam_search(model, source, 4, 3, 0.6, max_length))


@one_quick_attention
def test_a_batch_that_gets_smaller_finds_what_a_whole_one_does(attention: str) -> None:
    assert_the_same(attention, None)


def test_so_it_does_where_a_limit_is_given() -> None:
    assert_the_same("k_memory", 5)


def test_sentences_that_are_done_leave_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    advance = compacting.advance

    def watched(model: Any, memory: Any, state: Any, beam: Any, *more: Any) -> Any:
        def note(batch: Any) -> Any:
            sizes.append(int(batch))
            return batch

        seen = tf.py_function(note, [tf.shape(beam.tokens)[0]], tf.int32)
        with tf.control_dependencies([seen]):
            tokens = tf.identity(beam.tokens)
        return advance(model, memory, state, beam._replace(tokens=tokens), *more)

    # Limits of 10, 26 and 16 steps, in chunks of 2.
    source = padded(sources_of(0, 8, 3))
    model = for_decoding(small_model(), 4)
    expected = as_array(beam_search(model, source, 4, 4).steps).max(axis=1)
    monkeypatch.setattr(compacting, "advance", watched)
    started = model.start(tf.constant(source), 4)
    compacting_beam_search(model, tf.constant(source), *started, 4, 4, 0.0)
    assert sizes[0] == 3
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 3
    assert len(sizes) == -(-expected.max() // 2)

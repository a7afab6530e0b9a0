"""Limits on the length of a source, and encoders without exactly one output for each id."""

from typing import Any

import keras
import numpy as np
import pytest

from seq2seq_memattn.attention.additive import BahdanauAttention
from seq2seq_memattn.attention.k_memory import KMemoryAttention
from seq2seq_memattn.attention.multiplicative import LuongAttention
from seq2seq_memattn.search.beam import beam_search
from seq2seq_memattn.search.searchable import Searchable
from seq2seq_memattn.vocabulary import PAD_ID
from tests.errors import refused
from tests.search import own_parts
from tests.search.own_parts import ENCODER_UNITS, SOURCE, WIDTH
from tests.tolerances import as_array, assert_close


def test_only_an_attention_that_is_made_for_a_length_limits_the_source() -> None:
    found = {
        name: own_parts.make(attention=attention).searchable().longest_source
        for name, attention in (
            ("slots", KMemoryAttention(3, max_source_length=4)),
            ("encodings", KMemoryAttention(3, position_encoding="masked", max_source_length=4)),
            ("location", LuongAttention("location", max_source_length=4)),
            ("bahdanau", BahdanauAttention(3)),
        )
    }
    assert found == {"slots": None, "encodings": 4, "location": 4, "bahdanau": None}


def test_sources_longer_than_the_attention_knows_are_refused() -> None:
    attention = KMemoryAttention(3, position_encoding="mean_one", max_source_length=4)
    searchable = own_parts.make(attention=attention).searchable()
    beam_search(searchable, np.array([[3, 4, 5, 6, 0, 0]]), 2, max_length=3)
    assert refused(beam_search, searchable, np.array([[3, 4, 5, 6, 3]]), 2, max_length=3) == (
        "`source`: expected at most 4 tokens, as the attention's `max_source_length` demands."
    )


def strided(source: Any) -> own_parts.Encoded:
    """One encoder output for two ids."""
    halves = keras.layers.Conv1D(WIDTH, 2, strides=2)(own_parts.embedded(source))
    outputs = keras.layers.GRU(ENCODER_UNITS, return_sequences=True)(halves)
    return outputs, (), source[:, ::2] != PAD_ID


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_limit_counts_encoder_outputs_where_there_are_fewer_than_ids(jit_compile: bool) -> None:
    attention = KMemoryAttention(3, position_encoding="mean_one", max_source_length=4)
    own = own_parts.make(strided, attention=attention)
    searchable = Searchable.from_model(own.trained)
    source = np.full((2, 8), 3)
    found = beam_search(searchable, source, 2, max_length=3, jit_compile=jit_compile)
    log_probs = own_parts.rescored(own.trained, source, as_array(found.tokens).astype(np.int32))
    written = np.arange(3) < as_array(found.steps)[:, :, None]
    assert_close(found.log_probs, (as_array(log_probs) * written).sum(axis=2))


def test_sources_with_more_encoder_outputs_than_the_limit_are_refused() -> None:
    attention = KMemoryAttention(3, position_encoding="mean_one", max_source_length=4)
    searchable = Searchable.from_model(own_parts.make(strided, attention=attention).trained)
    assert searchable.longest_source == 9
    assert refused(beam_search, searchable, np.full((2, 10), 3), 2, max_length=3) == (
        "`source`: expected at most 9 tokens, as the attention's `max_source_length` demands."
    )


def test_coverage_needs_an_encoder_output_per_id() -> None:
    own = own_parts.make(strided, attention=KMemoryAttention(3))
    searchable = Searchable.from_model(own.trained)
    message = refused(beam_search, searchable, SOURCE[:, :4], 2, max_length=3, coverage_penalty=0.5)
    assert message == "`coverage_penalty`: expected an encoder with one output for each source id."


class Positions(keras.layers.Layer):
    """Adds positions from a table with 6 rows."""

    def call(self, x: Any) -> Any:
        return x + keras.ops.arange(6.0)[None, : x.shape[1], None]


def test_an_encoder_may_itself_refuse_long_sources() -> None:
    def encoder(source: Any) -> own_parts.Encoded:
        x = Positions()(own_parts.embedded(source))
        outputs = keras.layers.Conv1D(ENCODER_UNITS, 2, strides=2)(x)
        return outputs, (), source[:, ::2] != PAD_ID

    attention = KMemoryAttention(3, position_encoding="mean_one", max_source_length=4)
    assert own_parts.make(encoder, attention=attention).searchable().longest_source == 6

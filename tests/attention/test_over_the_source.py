"""What holds for Bahdanau's and Luong's attention alike: both read the whole source."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

from seq2seq_memattn.attention.additive import BahdanauAttention
from seq2seq_memattn.attention.multiplicative import LuongAttention
from tests.inputs import MODES, mask_of, normal, randomise, run, tensor
from tests.tolerances import as_array, assert_close

BATCH, QUERIES, SOURCE_LENGTH, ENCODER_UNITS, QUERY_UNITS = 2, 3, 5, 7, 11
LENGTHS = (5, 3)
ENCODER_OUTPUTS = normal(BATCH, SOURCE_LENGTH, ENCODER_UNITS)
MASK = mask_of(LENGTHS, SOURCE_LENGTH)
ATTENTIONS: dict[str, tuple[Callable[[], Any], int]] = {  # with the width of queries
    "bahdanau": (lambda: BahdanauAttention(4), QUERY_UNITS),
    "dot": (lambda: LuongAttention("dot"), ENCODER_UNITS),
    "general": (lambda: LuongAttention("general"), ENCODER_UNITS),
    "general, other width": (lambda: LuongAttention("general", QUERY_UNITS), QUERY_UNITS),
}


@pytest.fixture(params=ATTENTIONS)
def case(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """An attention with random weights, and queries."""
    make, width = ATTENTIONS[request.param]
    attention, queries = make(), tensor(normal(BATCH, QUERIES, width))
    attention.read(queries, attention.prepare(tensor(ENCODER_OUTPUTS)))
    randomise(attention)
    return attention, queries


def test_scores_sum_to_one_and_are_zero_on_padding(case: tuple[Any, Any]) -> None:
    attention, queries = case
    memory = attention.prepare(tensor(ENCODER_OUTPUTS), tensor(MASK, "bool"))
    scores = as_array(attention.read(queries, memory)[1])
    assert_close(np.sum(scores, axis=-1), np.ones([BATCH, QUERIES]))
    assert not scores[~np.repeat(MASK[:, None], QUERIES, axis=1)].any()


def test_more_padding_changes_nothing(case: tuple[Any, Any]) -> None:
    attention, queries = case
    filled = np.where(MASK[:, :, None], ENCODER_OUTPUTS, 100.0)
    longer = np.concatenate([filled, np.full([BATCH, 6, ENCODER_UNITS], -100.0)], axis=1)
    short = attention.prepare(tensor(ENCODER_OUTPUTS), MASK)
    long = attention.prepare(tensor(longer), mask_of(LENGTHS, SOURCE_LENGTH + 6))
    context, scores, _ = attention.read(queries, long)
    assert_close([context, scores[:, :, :SOURCE_LENGTH]], list(attention.read(queries, short)[:2]))


def test_memory_is_not_tiled_over_queries_nor_kept_on_the_layer(case: tuple[Any, Any]) -> None:
    attention, queries = case
    before = dict(vars(attention))
    memory = attention.prepare(tensor(ENCODER_OUTPUTS), MASK)
    together = attention.read(queries, memory)[:2]
    assert vars(attention) == before
    assert all(leaf.shape[:2] == (BATCH, SOURCE_LENGTH) for leaf in memory)
    for index in range(QUERIES):
        alone = attention.read(queries[:, index : index + 1], memory)[:2]
        assert_close(alone, [x[:, index : index + 1] for x in together])


def test_a_linear_map_of_the_rows_gives_the_map_of_the_context(case: tuple[Any, Any]) -> None:
    attention, queries = case
    memory = attention.prepare(tensor(ENCODER_OUTPUTS), MASK)
    context, scores, _ = attention.read(queries, memory)
    linear = tensor(normal(ENCODER_UNITS, 13))
    mapped = attention.combine(scores, ops.matmul(memory.rows, linear))
    assert_close(mapped, ops.matmul(context, linear))


def test_the_scores_are_the_alignment_and_every_real_position_is_scored(
    case: tuple[Any, Any],
) -> None:
    attention, queries = case
    memory = attention.prepare(tensor(ENCODER_OUTPUTS), MASK)
    scores, state = attention.score(queries, memory)
    assert state == attention.initial_state(memory, QUERIES) == ()
    assert attention.alignment(scores, memory) is scores
    counts = as_array(attention.positions_scored(scores, memory))
    np.testing.assert_array_equal(counts, [[5, 5, 5], [3, 3, 3]])


@pytest.mark.parametrize("mode", MODES)
def test_without_a_mask_that_of_keras_counts(case: tuple[Any, Any], mode: str) -> None:
    attention, _ = case
    embedding = keras.layers.Embedding(11, ENCODER_UNITS, mask_zero=True)
    ids = tensor([[3, 9, 4, 1, 7], [2, 8, 5, 0, 0]], "int32")
    attached = run(mode, lambda ids: attention.prepare(embedding(ids)), ids)
    np.testing.assert_array_equal(as_array(attached.mask), MASK)
    assert as_array(attention.prepare(tensor(ENCODER_OUTPUTS)).mask).all()

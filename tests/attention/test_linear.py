from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.attention.linear import LinearAttention
from tests.inputs import MODES, mask_of, normal, randomise, run, tensor
from tests.reference import attention as reference
from tests.tolerances import as_array, assert_close

BATCH, QUERIES, SOURCE_LENGTH, ENCODER_UNITS, QUERY_UNITS, UNITS = 2, 3, 5, 7, 11, 4
LENGTHS = (5, 3)
OUTPUTS = normal(BATCH, SOURCE_LENGTH, ENCODER_UNITS)
MASK = mask_of(LENGTHS, SOURCE_LENGTH)
QUERY = normal(BATCH, QUERIES, QUERY_UNITS)


def build(dtype: str = "float32") -> LinearAttention:
    attention = LinearAttention(UNITS, dtype=dtype)
    attention.read(tensor(QUERY, dtype), attention.prepare(tensor(OUTPUTS, dtype)))
    randomise(attention)
    return attention


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_memory_and_context_equal_the_equations(mode: str, dtype: str) -> None:
    attention = build(dtype)

    def read(outputs: Any, mask: Any, queries: Any) -> Any:
        memory = attention.prepare(outputs, mask)
        return memory.rows, attention.read(queries, memory)[0]

    rows, context = run(
        mode, read, tensor(OUTPUTS, dtype), tensor(MASK, "bool"), tensor(QUERY, dtype)
    )
    W_k, W_q = (
        as_array(attention.key_projection.kernel),
        as_array(attention.query_projection.kernel),
    )
    for row, length in enumerate(LENGTHS):
        expected = reference.linear_memory(OUTPUTS[row], W_k, length)
        assert_close(rows[row], expected, dtype)
        for index in range(QUERIES):
            assert_close(context[row, index], expected @ (QUERY[row, index] @ W_q), dtype)


def test_the_memory_does_not_grow_with_the_source_and_padding_adds_nothing() -> None:
    attention = build()
    filled = np.concatenate([OUTPUTS, np.full([BATCH, 6, ENCODER_UNITS], 9.0)], axis=1)
    short = attention.prepare(tensor(OUTPUTS), MASK)
    long = attention.prepare(tensor(filled), mask_of(LENGTHS, SOURCE_LENGTH + 6))
    assert tuple(long.rows.shape) == (BATCH, UNITS, UNITS) == tuple(short.rows.shape)
    assert_close(long.rows, short.rows)
    assert attention.num_rows == UNITS


def test_the_alignment_says_how_the_context_is_made_of_keys() -> None:
    attention = build()
    memory = attention.prepare(tensor(OUTPUTS), MASK)
    context, scores, state = attention.read(tensor(QUERY), memory)
    alignment = attention.alignment(scores, memory)
    assert state == ()
    assert_close(as_array(alignment) @ as_array(memory.keys), context)
    assert not as_array(alignment)[1, :, 3:].any()
    assert not as_array(attention.positions_scored(scores, memory)).any()
    assert attention.without_sources(memory).keys.shape[1] == 0


def test_units_must_be_positive() -> None:
    with pytest.raises(ValueError, match="`units` must be an int >= 1; got 0"):
        LinearAttention(0)

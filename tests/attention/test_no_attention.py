from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.attention.no_attention import NoAttention
from tests.inputs import MODES, mask_of, normal, run, tensor
from tests.tolerances import as_array

BATCH, QUERIES, SOURCE_LENGTH, ENCODER_UNITS, QUERY_UNITS = 2, 3, 5, 7, 11
MASK = mask_of((5, 3), SOURCE_LENGTH)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_there_is_nothing_to_read_and_the_alignment_is_zero(mode: str, dtype: str) -> None:
    attention = NoAttention(dtype=dtype)

    def read(outputs: Any, mask: Any, queries: Any) -> Any:
        memory = attention.prepare(outputs, mask)
        context, scores, state = attention.read(queries, memory)
        assert state == ()
        counts = attention.positions_scored(scores, memory)
        return memory, context, scores, attention.alignment(scores, memory), counts

    memory, context, scores, alignment, counts = run(
        mode,
        read,
        tensor(normal(BATCH, SOURCE_LENGTH, ENCODER_UNITS), dtype),
        tensor(MASK, "bool"),
        tensor(normal(BATCH, QUERIES, QUERY_UNITS), dtype),
    )
    assert tuple(memory.rows.shape) == (BATCH, 0, 0)
    assert tuple(context.shape) == tuple(scores.shape) == (BATCH, QUERIES, 0)
    np.testing.assert_array_equal(as_array(alignment), np.zeros([BATCH, QUERIES, SOURCE_LENGTH]))
    np.testing.assert_array_equal(as_array(counts), np.zeros([BATCH, QUERIES]))
    assert context.dtype == scores.dtype == alignment.dtype == dtype


def test_combine_takes_rows_of_any_width() -> None:
    attention = NoAttention()
    scores = tensor(np.zeros([BATCH, QUERIES, 0]))
    combined = attention.combine(scores, tensor(np.zeros([BATCH, 0, 13])))
    np.testing.assert_array_equal(as_array(combined), np.zeros([BATCH, QUERIES, 13]))


def test_it_has_no_weights() -> None:
    assert NoAttention().weights == []

"""The concat and location scores of Luong attention; test_multiplicative.py tests the others."""

from typing import Any

import pytest

from seq2seq_memattn.attention.multiplicative import LuongAttention
from tests.inputs import MODES, mask_of, normal, randomise, run, tensor
from tests.reference import attention as reference
from tests.tolerances import as_array, assert_close

LENGTHS = (5, 3)
OUTPUTS = normal(2, 5, 7)
MASK = mask_of(LENGTHS, 5)
QUERY = normal(2, 3, 11)


def build(dtype: str, *arguments: Any) -> LuongAttention:
    attention = LuongAttention(*arguments, dtype=dtype)
    attention.read(tensor(QUERY, dtype), attention.prepare(tensor(OUTPUTS, dtype)))
    randomise(attention)
    return attention


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("arguments", [("concat", 4), ("location", None, 6)], ids=str)
def test_scores_and_context_equal_the_equations(
    arguments: tuple[Any, ...], dtype: str, mode: str
) -> None:
    attention = build(dtype, *arguments)

    def read(outputs: Any, mask: Any, queries: Any) -> Any:
        return attention.read(queries, attention.prepare(outputs, mask))[:2]

    context, scores = run(
        mode, read, tensor(OUTPUTS, dtype), tensor(MASK, "bool"), tensor(QUERY, dtype)
    )
    weights = {w.path.split("/")[-2]: as_array(w) for w in attention.weights}
    for row, length in enumerate(LENGTHS):
        for index, query in enumerate(QUERY[row]):
            if arguments[0] == "concat":
                W_s, W_h, v = (
                    next(value for name, value in weights.items() if name.endswith(suffix))
                    for suffix in ("key", "query", "energy")
                )
                assert W_s.shape[1] == 4
                alpha = reference.luong_concat_scores(
                    query, OUTPUTS[row], W_h, W_s, v[:, 0], length
                )
            else:
                (W_a,) = weights.values()
                alpha = reference.luong_location_scores(query, OUTPUTS[row], W_a, length)
            assert_close(scores[row, index], alpha, dtype)
            assert_close(context[row, index], reference.context(alpha, OUTPUTS[row]), dtype)


@pytest.mark.parametrize("mode", MODES)
def test_a_location_score_leaves_out_what_it_was_not_made_for(mode: str) -> None:
    attention = build("float32", "location", None, 4)

    def score(outputs: Any, queries: Any) -> Any:
        return attention.score(queries, attention.prepare(outputs))[0]

    scores = run(mode, score, tensor(OUTPUTS), tensor(QUERY))
    expected = run(mode, score, tensor(OUTPUTS[:, :4]), tensor(QUERY))
    assert_close(scores[:, :, :4], expected)
    assert not as_array(scores)[:, :, 4].any()

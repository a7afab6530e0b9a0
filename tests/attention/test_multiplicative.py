from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.attention.multiplicative import LuongAttention
from tests.inputs import MODES, mask_of, normal, randomise, run, tensor
from tests.reference import attention as reference
from tests.tolerances import as_array, assert_close

BATCH, QUERIES, SOURCE_LENGTH, ENCODER_UNITS, QUERY_UNITS = 2, 3, 5, 7, 11
LENGTHS = (5, 3)
ENCODER_OUTPUTS = normal(BATCH, SOURCE_LENGTH, ENCODER_UNITS)
MASK = mask_of(LENGTHS, SOURCE_LENGTH)

variants = pytest.mark.parametrize(
    ("score", "units"), [("dot", None), ("general", None), ("general", QUERY_UNITS)]
)


def build(score: str, units: int | None, dtype: str = "float32") -> LuongAttention:
    attention = LuongAttention(score, units, dtype=dtype)  # type: ignore[arg-type]
    attention.prepare(tensor(ENCODER_OUTPUTS, dtype))
    randomise(attention)
    return attention


def queries_for(units: int | None) -> Any:
    return normal(BATCH, QUERIES, units or ENCODER_UNITS)


@variants
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scores_and_context_equal_the_equations(
    score: str, units: int | None, mode: str, dtype: str
) -> None:
    attention, queries = build(score, units, dtype), queries_for(units)

    def read(outputs: Any, mask: Any, queries: Any) -> Any:
        return attention.read(queries, attention.prepare(outputs, mask))[:2]

    context, scores = run(
        mode,
        read,
        tensor(ENCODER_OUTPUTS, dtype),
        tensor(MASK, "bool"),
        tensor(queries, dtype),
    )
    kernel = [as_array(weight) for weight in attention.weights]
    assert len(kernel) == (score == "general")
    for row, length in enumerate(LENGTHS):
        outputs = ENCODER_OUTPUTS[row]
        for index, query in enumerate(queries[row]):
            if kernel:
                alpha = reference.luong_general_scores(query, outputs, kernel[0], length)
            else:
                alpha = reference.luong_dot_scores(query, outputs, length)
            assert_close(scores[row, index], alpha, dtype)
            assert_close(context[row, index], reference.context(alpha, outputs), dtype)


def test_a_dot_score_of_two_tokens_by_hand() -> None:
    # The energies of the two tokens are ln 2 and ln 3.
    attention = LuongAttention("dot", dtype="float64")
    memory = attention.prepare(tensor(np.eye(2)[None], "float64"))
    context, scores, _ = attention.read(tensor([[[np.log(2.0), np.log(3.0)]]], "float64"), memory)
    assert_close(scores, [[[2 / 5, 3 / 5]]], "float64")
    assert_close(context, [[[2 / 5, 3 / 5]]], "float64")


def test_a_general_score_of_two_tokens_by_hand() -> None:
    # The map gives 5 and 7. Multiplied by the query, ln 2 / 2, the energies differ by ln 2.
    attention = LuongAttention("general", units=1, dtype="float64")
    attention.prepare(tensor(np.eye(2)[None], "float64"))
    attention.key_projection.kernel.assign([[5.0], [7.0]])  # type: ignore[union-attr]
    memory = attention.prepare(tensor(np.eye(2)[None], "float64"))
    _, scores, _ = attention.read(tensor([[[np.log(2.0) / 2]]], "float64"), memory)
    assert_close(scores, [[[1 / 3, 2 / 3]]], "float64")


def test_dot_names_both_widths_and_the_remedy() -> None:
    attention = build("dot", None)
    memory = attention.prepare(tensor(ENCODER_OUTPUTS), MASK)
    message = "expected 7 units.*got 11.*'general' with units=11.*encoder_projection_units"
    with pytest.raises(ValueError, match=message):
        attention.score(tensor(queries_for(QUERY_UNITS)), memory)


def test_general_names_both_widths_and_the_remedy() -> None:
    attention = build("general", 13)
    memory = attention.prepare(tensor(ENCODER_OUTPUTS), MASK)
    with pytest.raises(ValueError, match="expected 13 units.*got 11.*units=11"):
        attention.score(tensor(queries_for(QUERY_UNITS)), memory)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"score": "cosine"},
            "`score` must be one of dot, general, concat, location; got 'cosine'",
        ),
        ({"score": 8}, r"expected a name; got 8\. .* is LuongAttention\('general', units\) here"),
        ({"score": "concat"}, "`units` must be an int >= 1; got None"),
        ({"score": "dot", "units": 3}, "`units` is for general and concat; got 3 with 'dot'"),
        ({"score": "general", "units": 0}, "`units` must be an int >= 1; got 0"),
        ({"score": "location"}, "`max_source_length` must be an int >= 1; got None"),
        ({"score": "dot", "max_source_length": 0}, "`max_source_length`.*got 0 with 'dot'"),
        ({"score": "dot", "max_source_length": 9}, "`max_source_length`.*got 9 with 'dot'"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LuongAttention(**arguments)

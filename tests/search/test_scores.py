import numpy as np
import pytest

from seq2seq_memattn.search.scores import best_penalty, length_penalty
from tests.reference import beam_search as reference
from tests.tolerances import as_array, assert_close

EXPONENTS = (0.0, 0.6, 1.0, 2.5, -0.5)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_the_penalty_equals_the_reference(exponent: float) -> None:
    lengths = np.array([[0, 1, 2, 7], [19, 50, 199, 1]], np.int32)
    expected = [[reference.length_penalty(int(n), exponent) for n in row] for row in lengths]
    penalties = length_penalty(lengths, exponent)
    assert as_array(penalties).dtype == np.float64  # `as_array` converts float32
    assert_close(penalties, expected)


def test_the_penalty_by_hand() -> None:
    assert_close(length_penalty(np.array([1, 7, 13]), 1.0), [1.0, 2.0, 3.0])
    assert_close(length_penalty(np.array([1, 7, 13]), 2.0), [1.0, 4.0, 9.0])
    assert_close(length_penalty(np.array([0, 1, 100]), 0.0), [1.0, 1.0, 1.0])


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_the_best_penalty_favours_a_log_probability_at_least_as_much_as_any_length(
    exponent: float,
) -> None:
    first, last = np.array([0, 3, 8, 8]), np.array([8, 8, 8, 20])
    best = as_array(best_penalty(first, last, exponent))
    for i in range(len(first)):
        scores = [
            -1.0 / reference.length_penalty(length, exponent)
            for length in range(first[i], last[i] + 1)
        ]
        assert_close(np.array(-1.0 / best[i]), np.array(max(scores)))

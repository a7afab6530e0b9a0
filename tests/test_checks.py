from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.checks import check_int, check_number
from tests.errors import refused


@pytest.mark.parametrize("value", [2, np.int64(2), np.uint8(5)])
def test_ints_in_range_are_accepted(value: Any) -> None:
    check_int("size", value, 2, 5)


@pytest.mark.parametrize("value", [1, 6, 2.0, np.float64(2.0), True, np.True_, "2", None, [2]])
def test_other_values_than_ints_in_range_are_refused(value: Any) -> None:
    message = refused(check_int, "size", value, 2, 5)
    assert message == f"`size` must be an int in 2..5; got {value!r}."


def test_an_array_in_an_error_takes_one_line() -> None:
    message = refused(check_int, "size", np.array([[1], [2]]))
    assert message == "`size` must be an int >= 1; got array([[1], [2]])."


@pytest.mark.parametrize("value", [0, -1.5, np.float32(2.0), np.int64(3)])
def test_finite_numbers_are_accepted(value: Any) -> None:
    check_number("share", value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), False, "0.5", None])
def test_other_values_than_finite_numbers_are_refused(value: Any) -> None:
    message = refused(check_number, "share", value)
    assert message == f"`share` must be a finite number; got {value!r}."

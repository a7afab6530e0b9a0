import numpy as np
import pytest

from seq2seq_memattn.attention.position_encoding import PositionEncoding, position_encoding
from tests.inputs import MODES, mask_of, run, tensor
from tests.reference import attention as reference
from tests.tolerances import as_array, assert_close

SOURCE_LENGTH, SLOTS, MAX_SOURCE_LENGTH = 5, 4, 7
LENGTHS = (5, 1, 3)

kinds = pytest.mark.parametrize("kind", ["masked", "sum_to_one", "mean_one"])


@kinds
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("num_slots", [1, SLOTS])
def test_encodings_equal_equation_10(
    kind: PositionEncoding, mode: str, dtype: str, num_slots: int
) -> None:
    encodings = run(
        mode,
        lambda mask: position_encoding(num_slots, MAX_SOURCE_LENGTH, mask, kind, dtype),
        tensor(mask_of(LENGTHS, SOURCE_LENGTH), "bool"),
    )
    expected = np.zeros([len(LENGTHS), SOURCE_LENGTH, num_slots])
    for row, length in enumerate(LENGTHS):
        of_sentence = reference.position_encodings(num_slots, MAX_SOURCE_LENGTH, length, kind)
        expected[row, :length] = of_sentence.T
    assert_close(encodings, expected, dtype)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("masked", [[1 / 2, 0], [1 / 2, 1 / 2]]),
        ("sum_to_one", [[1 / 2, 0], [1 / 2, 1]]),
        ("mean_one", [[1, 0], [1, 2]]),
    ],
)
def test_two_slots_of_two_tokens_by_hand(
    kind: PositionEncoding, expected: list[list[float]]
) -> None:
    # k/K is 1/2 and 1, s/S is 0 and 1/2: L = (1 - k/K)(1 - s/S) + (k/K)(s/S).
    encodings = position_encoding(2, 2, tensor([[True, True]], "bool"), kind, "float64")
    assert_close(encodings, [expected], "float64")


@kinds
def test_padding_gets_zero_and_changes_nothing(kind: PositionEncoding) -> None:
    short, long = (
        as_array(
            position_encoding(
                SLOTS, MAX_SOURCE_LENGTH, tensor(mask_of(LENGTHS, size), "bool"), kind, "float64"
            )
        )
        for size in (SOURCE_LENGTH, SOURCE_LENGTH + 6)
    )
    assert not long[:, SOURCE_LENGTH:].any()
    np.testing.assert_array_equal(long[:, :SOURCE_LENGTH], short)


@pytest.mark.parametrize(("kind", "mean"), [("sum_to_one", 1 / 3), ("mean_one", 1.0)])
def test_renormalised_encodings_have_the_same_mean_for_every_slot(
    kind: PositionEncoding, mean: float
) -> None:
    mask = tensor(mask_of([3], SOURCE_LENGTH), "bool")
    encodings = position_encoding(SLOTS, MAX_SOURCE_LENGTH, mask, kind, "float64")
    assert_close(np.mean(as_array(encodings)[0, :3], axis=0), np.full(SLOTS, mean), "float64")


@kinds
def test_the_zero_of_the_last_slot_of_one_token_stays(kind: PositionEncoding) -> None:
    encodings = position_encoding(2, 4, tensor([[True, False]], "bool"), kind, "float64")
    assert not as_array(encodings)[0, :, 1].any()


@kinds
def test_a_source_without_real_tokens_gets_zeros(kind: PositionEncoding) -> None:
    encodings = position_encoding(2, 4, tensor([[False, False]], "bool"), kind, "float32")
    np.testing.assert_array_equal(as_array(encodings), np.zeros([1, 2, 2]))


@kinds
def test_there_may_be_no_sources(kind: PositionEncoding) -> None:
    encodings = position_encoding(2, 4, tensor(np.zeros([0, 3]), "bool"), kind, "float32")
    assert tuple(encodings.shape) == (0, 3, 2)

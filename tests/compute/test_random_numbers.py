import numpy as np
import pytest

from seq2seq_memattn.compute.random_numbers import threefry, uniform
from tests.inputs import MODES, run
from tests.tolerances import as_array

# Key, counter and result: known answers of Random123, the code of the algorithm's authors.
KNOWN = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((2**32 - 1, 2**32 - 1), (2**32 - 1, 2**32 - 1), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize("mode", [*MODES, "xla"])
def test_words_are_those_of_the_authors(mode: str) -> None:
    keys, counters, results = (np.array(words, np.uint32).T for words in zip(*KNOWN, strict=True))

    def words(keys: np.ndarray, counters: np.ndarray) -> tuple[object, object]:
        return threefry((keys[0], keys[1]), (counters[0], counters[1]))

    found = run(mode, words, keys, counters)
    np.testing.assert_array_equal(np.stack([np.asarray(word) for word in found]), results)


def test_numbers_are_spread_evenly_and_unrelated_to_their_neighbours() -> None:
    many = np.arange(40_000, dtype=np.int32)
    found = as_array(uniform((np.int32(7), np.arange(3, dtype=np.int32)[:, None]), (many, 0)))
    assert found.shape == (3, len(many))
    assert found.min() >= 0.0 and found.max() < 1.0
    counts = np.histogram(found, bins=50, range=(0.0, 1.0))[0]
    expected = found.size / 50
    assert ((counts - expected) ** 2 / expected).sum() < 49 + 5 * np.sqrt(2 * 49)
    related = np.corrcoef(np.concatenate([found, np.roll(found, 1, axis=1)]))
    assert abs(related[~np.eye(6, dtype=bool)]).max() < 5 / np.sqrt(len(many))


def test_integers_of_any_kind_count_modulo_two_to_the_32() -> None:
    numbers = [
        float(uniform((key, np.int32(1)), (np.int32(2), np.int32(3))))
        for key in (np.int32(-1), np.uint32(2**32 - 1), np.int64(2**32 - 1))
    ]
    assert numbers[0] == numbers[1] == numbers[2]

import numpy as np
import pytest

from seq2seq_memattn.preparation.sample import LineSample


def sample(capacity: int, seed: int, count: int) -> list[int]:
    lines = LineSample(capacity, seed)
    for number in range(count):
        lines.add(b"%d" % number)
    return [int(line) for line in lines.lines]


@pytest.mark.parametrize("count", [0, 1, 7])
def test_few_lines_are_all_taken_in_their_order(count: int) -> None:
    assert sample(7, 0, count) == list(range(count))


def test_a_sample_has_its_size_and_no_line_twice() -> None:
    found = sample(20, 3, 5000)
    assert len(set(found)) == len(found) == 20
    assert max(found) < 5000


def test_a_seed_gives_the_same_sample_and_another_seed_another() -> None:
    assert sample(9, 1, 300) == sample(9, 1, 300) != sample(9, 2, 300)


def test_every_line_has_the_same_chance() -> None:
    counts = np.zeros(40)
    for seed in range(4000):
        counts[sample(5, seed, 40)] += 1
    # The count is binomial: the mean is 500 of 4,000, the standard deviation 20.9.
    np.testing.assert_allclose(counts, 500, atol=5 * 20.9)

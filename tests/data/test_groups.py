import itertools
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from seq2seq_memattn.data.batching import Batch, make_batch
from seq2seq_memattn.data.groups import make_group, numpy_batch, read_ahead
from seq2seq_memattn.data.pairs import TokenPairs
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID
from tests.data.test_pairs import PAIRS, flat


def assert_same(batch: Batch, other: Batch) -> None:
    assert batch.keys() == other.keys()
    for key in batch:
        assert batch[key].dtype == other[key].dtype == np.int32
        np.testing.assert_array_equal(batch[key], other[key])


def made(batches: list[list[int]], number: int, num_rows: int = 0) -> Batch:
    rows = [np.array(batch) for batch in batches]
    full_size = (lambda _: num_rows) if num_rows else len
    return numpy_batch(make_group(TokenPairs(flat(PAIRS)), rows, full_size), number)


def test_a_batch_by_hand() -> None:
    p = PAD_ID
    assert_same(
        made([[3], [1, 0]], 1),
        {
            "source": np.array([[END_ID, p, p, p], [5, 6, 7, END_ID]], np.int32),
            "target_inputs": np.array([[START_ID, 9, 10], [START_ID, 8, p]], np.int32),
            "target_outputs": np.array([[9, 10, END_ID], [8, END_ID, p]], np.int32),
        },
    )


@pytest.mark.parametrize("indices", [[0], [2, 0, 3], [1, 1], [3, 2, 1, 0]])
def test_a_batch_is_what_make_batch_describes(indices: list[int]) -> None:
    sources = [np.array(PAIRS[i][0], np.int32) for i in indices]
    targets = [np.array(PAIRS[i][1], np.int32) for i in indices]
    assert_same(made([indices, [0]], 0), make_batch(sources, targets))


def test_rows_that_fill_a_batch_train_nothing() -> None:
    batch = made([[0, 2]], 0, num_rows=4)
    assert batch["source"][2:].tolist() == 2 * [[END_ID, PAD_ID, PAD_ID, PAD_ID]]
    assert (batch["target_outputs"][2:] == PAD_ID).all()
    assert_same({key: ids[:2] for key, ids in batch.items()}, made([[0, 2]], 0))


def test_the_next_item_is_made_while_one_is_used() -> None:
    started = [threading.Event() for _ in range(3)]

    def items() -> Iterator[int]:
        for number, event in enumerate(started):
            event.set()
            yield number

    ahead = read_ahead(items())
    assert next(ahead) == 0
    assert started[1].wait(10)
    assert not started[2].wait(0.2)
    assert list(ahead) == [1, 2]


def test_what_is_read_ahead_may_be_endless_or_fail() -> None:
    assert list(itertools.islice(read_ahead(itertools.count()), 3)) == [0, 1, 2]

    def failing() -> Iterator[int]:
        yield 1
        raise ValueError("a bad shard")

    ahead = read_ahead(failing())
    assert next(ahead) == 1
    with pytest.raises(ValueError, match="a bad shard"):
        next(ahead)

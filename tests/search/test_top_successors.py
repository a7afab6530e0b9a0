from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

from seq2seq_memattn.search import top_successors
from seq2seq_memattn.search.top_successors import DEAD, Successors, best_successors, block_size
from seq2seq_memattn.vocabulary import END_ID
from tests.inputs import normal, tensor
from tests.tolerances import as_array, assert_close

BATCH, BEAM = 3, 4


def case(vocab_size: int) -> tuple[Any, Any]:
    """Logits, and hypotheses that may end or continue, or are frozen or dead."""
    go_on, end = -10 + normal(BATCH, BEAM), -8 + normal(BATCH, BEAM, seed=1)
    go_on[0, 1] = end[1, 2] = go_on[2, 0] = DEAD
    go_on[1, 3] = end[1, 3] = DEAD
    penalties = 1 + np.abs(normal(BATCH, BEAM, seed=2)), 1 + np.abs(normal(BATCH, BEAM, seed=3))
    logits = 2 * normal(BATCH, BEAM, vocab_size, seed=4)
    logits[:, :, :END_ID] = 100.0  # padding and the start token, which are never written
    return logits.astype(np.float32), Successors(
        *(array.astype(np.float32) for array in (end, go_on, *penalties))
    )


def by_sorting(logits: Any, given: Successors) -> tuple[Any, Any, Any]:
    totals = logits + given.go_on[:, :, None]
    totals[:, :, END_ID] = given.end
    totals[:, :, :END_ID] = -np.inf
    penalties = np.repeat(given.go_on_penalty[:, :, None], logits.shape[2], axis=2)
    penalties[:, :, END_ID] = given.end_penalty
    flat = totals.reshape(BATCH, -1)
    order = np.argsort(-(totals / penalties).reshape(BATCH, -1), axis=1)[:, :BEAM]
    return np.take_along_axis(flat, order, axis=1), *np.divmod(order, logits.shape[2])


@pytest.mark.parametrize("blocks", [False, True], ids=["all", "blocks"])
@pytest.mark.parametrize("vocab_size", [3, 5, 6, 7, 23, 1031])
def test_the_best_are_those_that_sorting_finds(
    vocab_size: int, blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(top_successors, "MANY", 0 if blocks else 10**9)
    logits, given = case(vocab_size)
    found = best_successors(keras.tree.map_structure(tensor, given), ops.convert_to_tensor(logits))
    expected = by_sorting(logits, given)
    assert_close(found[0], expected[0])
    alive = expected[0] > DEAD / 2
    for ours, theirs in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(as_array(ours)[alive], theirs[alive])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 20, 15997, 31997])
def test_blocks_leave_few_tokens_over(count: int) -> None:
    size = block_size(count)
    assert 1 <= size <= count
    assert count % size <= 2
    if count > 100:
        assert 0.9 < size / count**0.5 < 2

import numpy as np
import pytest

from seq2seq_memattn.data.batching import make_batch
from seq2seq_memattn.runs.pair_scorer import PairScorer
from seq2seq_memattn.search.forced import ForcedDecoder
from tests.marks import slow
from tests.search.models import small_model, sources_of

SOURCES = sources_of(6, 0, 3)
TARGETS = sources_of(2, 4, 0)


@pytest.mark.parametrize(
    ("attention", "jit_compile"),
    [
        ("k_memory", False),
        ("flexible", False),
        *slow(("k_memory", True), ("flexible", True), ("bahdanau", True), ("bahdanau", False)),
    ],
)
def test_steps_give_the_scores_of_teacher_forcing(attention: str, jit_compile: bool) -> None:
    model = small_model(attention, vocab_size=8)
    found = ForcedDecoder(model, jit_compile)(make_batch(SOURCES, TARGETS))
    np.testing.assert_allclose(found, PairScorer(model)(SOURCES, TARGETS, 3), rtol=1e-5)


def test_the_window_is_that_of_the_positions_scored() -> None:
    batch = make_batch(SOURCES, TARGETS)
    lengths = [len(source) + 1 for source in SOURCES]
    np.testing.assert_allclose(
        ForcedDecoder(small_model("bahdanau", 8), False).window(batch), lengths
    )
    narrow = ForcedDecoder(small_model("flexible", 8, threshold=0.01), False).window(batch)
    assert (narrow >= 1).all() and narrow.sum() < sum(lengths)
    assert not ForcedDecoder(small_model("k_memory", 8), False).window(batch).any()

from functools import partial
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.search.prepared import PreparedModel
from seq2seq_memattn.search.replay import replay_attention, replay_log_probs
from seq2seq_memattn.vocabulary import END_ID, PAD_ID
from tests.inputs import MODES, run
from tests.search.models import every_attention, padded, small_model, sources_of, teacher_forced
from tests.tolerances import as_array, assert_close

SOURCES = sources_of(6, 0, 3)
TOKENS = np.array(
    [
        [[3, 4, 5, END_ID, PAD_ID], [4, END_ID, PAD_ID, PAD_ID, PAD_ID]],
        [[END_ID, PAD_ID, PAD_ID, PAD_ID, PAD_ID], [5, 5, 5, 5, 5]],
        [[5, 4, PAD_ID, PAD_ID, PAD_ID], [3, 3, 3, 3, END_ID]],
    ],
    np.int32,
)
TAKEN = np.array([[4, 2], [1, 5], [2, 5]], np.int32)


def look(model: Seq2Seq, source: Any, tokens: Any, taken: Any) -> Any:
    """What replaying two targets for each source gives."""
    decoding = PreparedModel(model)
    return replay_attention(decoding, *decoding.start(source, 2), tokens, taken)


@pytest.mark.parametrize("mode", MODES)
def test_scores_are_those_of_each_target_alone(mode: str) -> None:
    model = small_model("bahdanau")

    scores, alignments, positions = run(mode, partial(look, model), padded(SOURCES), TOKENS, TAKEN)
    assert scores.shape == alignments.shape == (3, 2, 5, 7)
    for row, source in enumerate(SOURCES):
        for rank in range(2):
            taken = TAKEN[row, rank]
            alone = TOKENS[row : row + 1, rank : rank + 1, :taken]
            decoding = PreparedModel(model)
            started = decoding.start(padded([source]), 4)  # more queries than targets
            expected = replay_attention(decoding, *started, alone, TAKEN[row, rank].reshape(1, 1))[
                0
            ]
            width = len(source) + 1
            assert_close(scores[row, rank, :taken, :width], as_array(expected)[0, 0])
            assert not as_array(scores)[row, rank, taken:].any()
            assert not as_array(scores)[row, rank, :, width:].any()
    np.testing.assert_array_equal(as_array(alignments), as_array(scores))
    # Every real step scores its whole source, including the end token.
    assert_close(positions, np.array([[7], [1], [4]]) * (TAKEN > 0))


@every_attention
def test_shapes_fit_every_attention(attention: str) -> None:
    model = small_model(attention)
    rows = model.cell.attention.num_rows
    decoding = PreparedModel(model)
    started = decoding.start(padded(SOURCES), 2)
    scores, alignments, positions = replay_attention(decoding, *started, TOKENS, TAKEN)
    is_windowed = attention in ("local_m", "local_p", "flexible_window")
    assert scores == () if is_windowed else scores.shape == (3, 2, 5, 7 if rows is None else rows)
    assert alignments.shape == (3, 2, 5, 7)
    assert tuple(positions.shape) == TAKEN.shape
    assert not as_array(alignments)[TAKEN[:, :, None] <= np.arange(5)].any()


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("attention", ["k_memory", "flexible"])
def test_log_probs_are_those_of_teacher_forcing(attention: str, folded: bool) -> None:
    model = small_model(attention)
    decoding = PreparedModel(model, folded)
    found = as_array(replay_log_probs(decoding, *decoding.start(padded(SOURCES), 2), TOKENS))
    for row, source in enumerate(SOURCES):
        targets = [
            target[:taken].tolist() for target, taken in zip(TOKENS[row], TAKEN[row], strict=True)
        ]
        assert_close(found[row], teacher_forced(model, padded([source])[0], targets))


def test_windows_have_the_size_that_is_scored() -> None:
    decoding = PreparedModel(small_model("flexible", threshold=0.01))
    started = decoding.start(padded(SOURCES), 2)
    positions = as_array(replay_attention(decoding, *started, TOKENS, TAKEN)[2])
    assert (positions >= 1).all()
    assert positions.sum() < 2 * sum(len(source) + 1 for source in SOURCES)


@pytest.mark.parametrize("mode", MODES)
def test_targets_without_steps_have_no_alignments(mode: str) -> None:
    model = small_model("bahdanau")

    scores, alignments, _ = run(
        mode, partial(look, model), padded(SOURCES), TOKENS[:, :, :0], 0 * TAKEN
    )
    assert scores.shape == alignments.shape == (3, 2, 0, 7)

import numpy as np
import pytest

from seq2seq_memattn.attention.constant import ConstantAttention
from tests.inputs import MODES, mask_of, normal, run, tensor
from tests.tolerances import as_array, assert_close

LENGTHS = (5, 3)
OUTPUTS = normal(2, 5, 6)
MASK = mask_of(LENGTHS, 5)
QUERY = normal(2, 3, 4)


@pytest.mark.parametrize("mode", MODES)
def test_every_step_gets_the_last_states(mode: str) -> None:
    def read(is_bidirectional: bool):  # type: ignore[no-untyped-def]
        attention = ConstantAttention(is_bidirectional)

        def all_of(outputs, mask, queries):  # type: ignore[no-untyped-def]
            memory = attention.prepare(outputs, mask)
            context, scores, _ = attention.read(queries, memory)
            return context, attention.alignment(scores, memory)

        return run(mode, all_of, tensor(OUTPUTS), tensor(MASK, "bool"), tensor(QUERY))

    last = np.stack([OUTPUTS[0, 4], OUTPUTS[1, 2]])
    context, alignment = read(False)
    assert_close(context, np.repeat(last[:, None], 3, axis=1))
    assert_close(alignment, np.repeat(np.eye(5)[[4, 2]][:, None], 3, axis=1))

    context, alignment = read(True)
    both = np.concatenate([last[:, :3], OUTPUTS[:, 0, 3:]], axis=1)
    assert_close(context, np.repeat(both[:, None], 3, axis=1))
    origin = np.array([[0.5, 0, 0, 0, 0.5], [0.5, 0, 0.5, 0, 0]])
    assert_close(alignment, np.repeat(origin[:, None], 3, axis=1))


def test_it_has_one_row_whatever_the_source_and_scores_no_position() -> None:
    attention = ConstantAttention()
    memory = attention.prepare(tensor(OUTPUTS))
    scores, state = attention.score(tensor(QUERY), memory)
    assert attention.num_rows == 1 == memory.rows.shape[1]
    assert state == ()
    assert (as_array(scores) == 1).all()
    assert not as_array(attention.positions_scored(scores, memory)).any()
    assert attention.without_sources(memory).origin.shape[1] == 0


@pytest.mark.parametrize("is_bidirectional", [False, True])
def test_an_empty_source_gives_zeros_and_not_the_row_of_another_sentence(
    is_bidirectional: bool,
) -> None:
    attention = ConstantAttention(is_bidirectional)
    memory = attention.prepare(tensor(OUTPUTS), tensor(mask_of((5, 0), 5), "bool"))
    assert as_array(memory.rows)[0].all()
    assert not as_array(memory.rows)[1].any()
    assert not as_array(memory.origin)[1].any()

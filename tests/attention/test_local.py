from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.attention.local import LocalAttention
from seq2seq_memattn.attention.windows import WindowScores
from tests.inputs import mask_of, normal, randomise, run, tensor
from tests.marks import slow
from tests.reference import windows as reference
from tests.tolerances import as_array, assert_close

BATCH, QUERIES, SOURCE_LENGTH, ENCODER_UNITS, QUERY_UNITS, UNITS = 3, 2, 9, 7, 6, 4
LENGTHS = (9, 6, 1)
OUTPUTS = normal(BATCH, SOURCE_LENGTH, ENCODER_UNITS)
MASK = mask_of(LENGTHS, SOURCE_LENGTH)
STEPS = 8
QUERY = normal(STEPS, BATCH, QUERIES, QUERY_UNITS, scale=2.0)
CENTRES = [("monotonic", None), ("predictive", None), ("predictive", 0.3)]


def build(centre: Any, sigma: float | None = None, dtype: str = "float32") -> LocalAttention:
    attention = LocalAttention(2, UNITS, centre, sigma=sigma, dtype=dtype)
    memory = attention.prepare(tensor(OUTPUTS, dtype))
    attention.read(tensor(QUERY[0], dtype), memory, attention.initial_state(memory, QUERIES))
    randomise(attention, scale=1.5)  # predicted centres at both ends and in between
    return attention


def all_steps(attention: LocalAttention, training: bool, dtype: str, mode: str) -> Any:
    """Contexts, alignments and numbers of positions scored of all steps."""

    def read(outputs: Any, mask: Any, queries: Any) -> Any:
        memory = attention.prepare(outputs, mask)
        state, found = attention.initial_state(memory, QUERIES), []
        for step in range(STEPS):
            context, scores, state = attention.read(queries[step], memory, state, training=training)
            assert isinstance(scores, WindowScores) != training
            looked = attention.positions_scored(scores, memory)
            found.append((context, attention.alignment(scores, memory), looked))
        return found

    return run(mode, read, tensor(OUTPUTS, dtype), tensor(MASK, "bool"), tensor(QUERY, dtype))


@pytest.mark.parametrize("training", [True, False], ids=["masked", "gathered"])
@pytest.mark.parametrize("mode", ["eager", *slow("graph", "xla")])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("centre", "sigma"), CENTRES)
def test_every_step_equals_the_equations(
    centre: str, sigma: float | None, dtype: str, mode: str, training: bool
) -> None:
    attention = build(centre, sigma, dtype)
    content: Any = attention.content
    W_s, W_h = as_array(content.key_projection.kernel), as_array(content.query_projection.kernel)
    v = as_array(content.energy.kernel)[:, 0]
    found = all_steps(attention, training, dtype, mode)
    widths = set()
    for step, (contexts, alignments, looked) in enumerate(found):
        for row, length in enumerate(LENGTHS):
            for index in range(QUERIES):
                query = QUERY[step, row, index]
                if centre == "monotonic":
                    position, spread = reference.local_centre(step, length), None
                else:
                    hidden: Any = attention.centre_hidden
                    energy: Any = attention.centre_energy
                    position = reference.predicted_centre(
                        query, as_array(hidden.kernel), as_array(energy.kernel)[:, 0], length
                    )
                    spread = sigma or 1.0
                expected = reference.local_scores(
                    query, OUTPUTS[row], W_h, W_s, v, length, position, 2, spread
                )
                assert_close(alignments[row, index], expected, dtype)
                assert_close(contexts[row, index], expected @ OUTPUTS[row], dtype)
                count = np.sum(np.abs(np.arange(length) - position) <= 2)
                assert looked[row, index] == (length if training else count)
                widths.add(int(count))
    # A source of one token, a window at the edge, a window inside; predicted centres are fractions.
    assert {1, 3, 5 if centre == "monotonic" else 4} <= widths


def test_a_window_of_other_scores_is_the_softmax_of_theirs() -> None:
    queries = tensor(normal(BATCH, QUERIES, ENCODER_UNITS))
    for score in ("dot", "general"):
        attention = LocalAttention(2, ENCODER_UNITS, score=score)  # type: ignore[arg-type]
        memory = attention.prepare(tensor(OUTPUTS), tensor(MASK, "bool"))
        state = attention.initial_state(memory, QUERIES)
        state = state._replace(step=state.step + 3)
        gathered, _ = attention.score(queries, memory, state)
        masked, _ = attention.score(queries, memory, state, training=True)
        assert_close(attention.alignment(gathered, memory), masked)
        assert as_array(masked)[0, 0, 1:6].all() and not as_array(masked)[0, 0, 6:].any()


def test_memory_is_not_tiled_and_states_are_one_number_each() -> None:
    attention = build("monotonic")
    memory = attention.prepare(tensor(OUTPUTS), MASK)
    assert [tuple(leaf.shape) for leaf in memory] == [(3, 9, 7), (3, 9, 4), (3, 9)]
    state = attention.initial_state(memory, 4)
    assert tuple(state.step.shape) == (3, 4)
    assert build("predictive").initial_state(memory, 4) == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"half_window": 0, "units": 3}, "`half_window` must be an int >= 1; got 0"),
        ({"half_window": 2, "units": 0}, "`units` must be an int >= 1; got 0"),
        ({"half_window": 2, "units": 3, "centre": "x"}, "`centre` must be one of monotonic, pred"),
        ({"half_window": 2, "units": 3, "score": "location"}, "`score` must be one of concat"),
        ({"half_window": 2, "units": 3, "sigma": 1.0}, "`sigma` is for predictive centres"),
        (
            {"half_window": 2, "units": 3, "centre": "predictive", "sigma": 0.0},
            "`sigma` must be positive.*got 0.0",
        ),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LocalAttention(**options)

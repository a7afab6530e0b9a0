import math
from typing import Any

import numpy as np
import pytest
from keras import ops

from seq2seq_memattn.attention.flexible import FlexibleAttention
from seq2seq_memattn.attention.multiplicative import LuongAttention
from seq2seq_memattn.attention.windows import WindowScores
from tests.inputs import mask_of, normal, randomise, run, tensor
from tests.marks import slow
from tests.reference import windows as reference
from tests.tolerances import as_array, assert_close

BATCH, QUERIES, SOURCE_LENGTH, ENCODER_UNITS, QUERY_UNITS, UNITS, EMBEDDING = 3, 2, 12, 7, 6, 4, 5
LENGTHS = (12, 6, 1)
OUTPUTS = normal(BATCH, SOURCE_LENGTH, ENCODER_UNITS)
MASK = mask_of(LENGTHS, SOURCE_LENGTH)
STEPS = 6
QUERY = normal(STEPS, BATCH, QUERIES, QUERY_UNITS, scale=2.0)
FED = normal(STEPS, BATCH, QUERIES, EMBEDDING)


def build(
    sigma: float = 1.5, threshold: float | None = None, dtype: str = "float32"
) -> FlexibleAttention:
    attention = FlexibleAttention(UNITS, sigma, threshold, dtype=dtype)
    memory = attention.prepare(tensor(OUTPUTS, dtype))
    state = attention.initial_state(memory, QUERIES)
    attention.read(tensor(QUERY[0], dtype), memory, state, tensor(FED[0], dtype))
    randomise(attention, scale=0.8)
    return attention


def all_steps(attention: FlexibleAttention, training: bool, dtype: str, mode: str) -> Any:
    """Contexts, alignments, numbers of positions scored, and states of all steps."""

    def read(outputs: Any, mask: Any, queries: Any, fed: Any) -> Any:
        memory = attention.prepare(outputs, mask)
        state, found = attention.initial_state(memory, QUERIES), []
        for step in range(STEPS):
            context, scores, state = attention.read(
                queries[step], memory, state, fed[step], training
            )
            gathers = attention.threshold is not None and not training and mode != "xla"
            assert isinstance(scores, WindowScores) == gathers
            looked = attention.positions_scored(scores, memory)
            found.append((context, attention.alignment(scores, memory), looked, state))
        return found

    arguments = (tensor(OUTPUTS, dtype), tensor(MASK, "bool"))
    return run(mode, read, *arguments, tensor(QUERY, dtype), tensor(FED, dtype))


@pytest.mark.parametrize("mode", ["eager", *slow("graph", "xla")])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("sigma", "threshold", "training"),
    [(1.5, None, False), (1.5, 0.4, False), (0.2, 1.2, False), (1.5, 0.4, True)],
    ids=["all", "window", "narrow", "training"],
)
def test_every_step_equals_the_equations(
    sigma: float, threshold: float | None, training: bool, dtype: str, mode: str
) -> None:
    attention = build(sigma, threshold, dtype)
    content: Any = attention.content
    W_s, W_h = as_array(content.key_projection.kernel), as_array(content.query_projection.kernel)
    v = as_array(content.energy.kernel)[:, 0]
    W_g, (v_g, b_g) = (
        as_array(attention.strength_hidden.kernel),
        [as_array(weight) for weight in attention.strength_energy.weights],
    )
    found = all_steps(attention, training, dtype, mode)
    tau = math.inf if threshold is None or training else threshold
    counts = set()
    for row, length in enumerate(LENGTHS):
        for index in range(QUERIES):
            focus = 0.0
            for step, (contexts, alignments, looked, state) in enumerate(found):
                query = QUERY[step, row, index]
                strength = reference.flexible_strength(
                    query, FED[step, row, index], W_g, v_g[:, 0], float(b_g[0])
                )
                expected, focus, count = reference.flexible_scores(
                    query, OUTPUTS[row], W_h, W_s, v, length, focus, strength, sigma, tau
                )
                assert_close(alignments[row, index], expected, dtype)
                assert_close(contexts[row, index], expected @ OUTPUTS[row], dtype)
                assert_close(state.focus[row, index], np.array(focus), dtype)
                assert_close(state.strength[row, index], np.array(strength), dtype)
                assert looked[row, index] == count
                counts.add((length, count))
    if tau == math.inf:
        assert counts == {(length, length) for length in LENGTHS}
    else:
        assert any(count < length for length, count in counts)


def test_a_threshold_that_nothing_reaches_changes_nothing() -> None:
    attention, wide = build(), build(threshold=1e9)
    for ours, theirs in zip(
        all_steps(wide, False, "float32", "graph"),
        all_steps(attention, False, "float32", "graph"),
        strict=True,
    ):
        assert_close(list(ours[:2]), list(theirs[:2]))
        assert_close(ours[3].focus, theirs[3].focus)
        np.testing.assert_array_equal(as_array(ours[2]), as_array(theirs[2]))


def test_without_strength_it_is_the_concat_score() -> None:
    attention = build(dtype="float64")
    attention.strength_energy.set_weights([np.zeros([UNITS, 1]), np.array([-1e4])])
    memory = attention.prepare(tensor(OUTPUTS, "float64"), MASK)
    state = attention.initial_state(memory, QUERIES)
    scores, state = attention.score(
        tensor(QUERY[0], "float64"), memory, state, tensor(FED[0], "float64")
    )
    plain = LuongAttention("concat", UNITS, dtype="float64")
    expected, _ = plain.score(
        tensor(QUERY[0], "float64"), plain.prepare(tensor(OUTPUTS, "float64"))
    )
    plain.set_weights(attention.content.get_weights())
    expected, _ = plain.score(
        tensor(QUERY[0], "float64"), plain.prepare(tensor(OUTPUTS, "float64"), MASK)
    )
    assert_close(scores, expected, "float64")
    assert not as_array(state.strength).any()


def test_the_window_is_as_wide_as_the_widest_of_the_batch() -> None:
    attention = build(sigma=1.0, threshold=0.5)
    attention.strength_energy.set_weights([np.zeros([UNITS, 1]), np.zeros([1])])  # g = 1/2
    memory = attention.prepare(tensor(OUTPUTS), MASK)
    state = attention.initial_state(memory, QUERIES)
    state = state._replace(focus=state.focus + 4.0)
    scores, _ = attention.score(tensor(QUERY[0]), memory, state, tensor(FED[0]))
    # |s - 4| < sqrt(2): 3, 4 and 5; a source of one token has its only position.
    assert tuple(scores.weights.shape) == (BATCH, QUERIES, 3)
    np.testing.assert_array_equal(as_array(scores.positions)[0, 0], [3, 4, 5])
    counts = as_array(attention.positions_scored(scores, memory))
    np.testing.assert_array_equal(counts, [[3, 3], [3, 3], [1, 1]])


@pytest.mark.parametrize("mode", ["eager", "xla"])
def test_a_position_counts_as_scored_though_its_score_underflows(mode: str) -> None:
    attention = build(sigma=0.5, threshold=1000.0)
    attention.strength_energy.set_weights([np.zeros([UNITS, 1]), np.array([50.0])])  # g = 1

    def read(queries: Any, fed: Any) -> Any:
        memory = attention.prepare(tensor(OUTPUTS), MASK)
        state = attention.initial_state(memory, QUERIES)
        scores, _ = attention.score(queries, memory, state, fed)
        return attention.alignment(scores, memory), attention.positions_scored(scores, memory)

    # |s| < 0.5 sqrt(2000), which is 22: every position; the penalty of the last one is 242.
    alignment, counts = run(mode, read, tensor(QUERY[0]), tensor(FED[0]))
    assert not as_array(alignment)[0, :, -1].any()
    np.testing.assert_array_equal(as_array(counts), [[length] * QUERIES for length in LENGTHS])


def test_a_linear_map_of_the_rows_gives_the_map_of_the_context() -> None:
    attention = build(threshold=0.4)
    memory = attention.prepare(tensor(OUTPUTS), MASK)
    state = attention.initial_state(memory, QUERIES)
    context, scores, _ = attention.read(tensor(QUERY[0]), memory, state, tensor(FED[0]))
    linear = tensor(normal(ENCODER_UNITS, 13))
    mapped = attention.combine(scores, ops.matmul(memory.rows, linear))
    assert_close(mapped, ops.matmul(context, linear))


def test_a_source_without_tokens_has_an_empty_window_in_range() -> None:
    attention = build(threshold=0.4)
    memory = attention.prepare(tensor(OUTPUTS), ops.zeros_like(MASK))
    state = attention.initial_state(memory, QUERIES)
    scores, _ = attention.score(tensor(QUERY[0]), memory, state, tensor(FED[0]))
    assert (as_array(scores.positions) >= 0).all()
    assert not as_array(scores.weights).any()
    assert not as_array(attention.positions_scored(scores, memory)).any()


def test_a_batch_may_be_empty() -> None:
    attention = build(threshold=0.4)
    memory = attention.prepare(tensor(OUTPUTS[:0]), MASK[:0])
    state = attention.initial_state(memory, QUERIES)
    context, _, state = attention.read(tensor(QUERY[0, :0]), memory, state, tensor(FED[0, :0]))
    assert tuple(context.shape) == (0, QUERIES, ENCODER_UNITS)
    assert tuple(state.focus.shape) == (0, QUERIES)


def test_inputs_are_needed() -> None:
    attention = build()
    memory = attention.prepare(tensor(OUTPUTS))
    with pytest.raises(ValueError, match="FlexibleAttention needs `inputs`.*got None"):
        attention.read(tensor(QUERY[0]), memory, attention.initial_state(memory, QUERIES))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"units": 0}, "`units` must be an int >= 1; got 0"),
        ({"units": 3, "sigma": 0.0}, "`sigma` must be positive; got 0.0"),
        ({"units": 3, "threshold": -1.0}, "`threshold` must be positive; got -1.0"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FlexibleAttention(**options)

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from seq2seq_memattn.attention.k_memory import KMemoryAttention
from tests.inputs import MODES, mask_of, normal, randomise, run, tensor
from tests.marks import slow
from tests.reference import attention as reference
from tests.tolerances import as_array, assert_close

BATCH, QUERIES, SOURCE_LENGTH, SLOTS, ENCODER_UNITS, QUERY_UNITS = 2, 3, 5, 4, 7, 11
LENGTHS = (5, 3)
MAX_SOURCE_LENGTH = 6
ENCODER_OUTPUTS = normal(BATCH, SOURCE_LENGTH, ENCODER_UNITS)
MASK = mask_of(LENGTHS, SOURCE_LENGTH)
QUERY = normal(BATCH, QUERIES, QUERY_UNITS)

encoder_scores = pytest.mark.parametrize("encoder_score", ["softmax", "sigmoid"])
decoder_scores = pytest.mark.parametrize("decoder_score", ["softmax", "sigmoid"])
axes = pytest.mark.parametrize("normalise_over", ["slots", "time"])
position_encodings = pytest.mark.parametrize(
    "position_encoding", [None, "masked", "sum_to_one", "mean_one"]
)
modes = pytest.mark.parametrize("mode", MODES)
modes_and_dtypes = pytest.mark.parametrize(
    ("mode", "dtype"),
    [("eager", "float64"), ("graph", "float32"), *slow(("eager", "float32"), ("graph", "float64"))],
)


def build(num_slots: int = SLOTS, dtype: str = "float32", **options: Any) -> KMemoryAttention:
    """An attention with random weights, including biases."""
    attention = KMemoryAttention(num_slots, dtype=dtype, **options)
    attention.read(tensor(QUERY, dtype), attention.prepare(tensor(ENCODER_OUTPUTS, dtype)))
    randomise(attention)
    return attention


def expected(attention: KMemoryAttention) -> dict[str, Any]:
    """Results of the equations for the sources and queries above, one sentence at a time."""
    encoder_kernel, *encoder_bias = [as_array(w) for w in attention.encoder_energy.weights]
    decoder_kernel, *decoder_bias = [as_array(w) for w in attention.decoder_energy.weights]
    results: dict[str, Any] = {n: [] for n in ("alpha", "rows", "scores", "context", "alignment")}
    for outputs, length, queries in zip(ENCODER_OUTPUTS, LENGTHS, QUERY, strict=True):
        alpha = reference.k_memory_alpha(
            outputs,
            length,
            encoder_kernel,
            attention.encoder_score,
            attention.normalise_over,
            attention.position_encoding,
            attention.max_source_length,
            *encoder_bias,
        )
        rows = reference.k_memory_rows(outputs, alpha)
        beta = [
            reference.k_memory_beta(query, decoder_kernel, attention.decoder_score, *decoder_bias)
            for query in queries
        ]
        results["alpha"].append(alpha)
        results["rows"].append(rows)
        results["scores"].append(beta)
        results["context"].append([reference.context(b, rows) for b in beta])
        results["alignment"].append([reference.k_memory_alignment(b, alpha) for b in beta])
    return {name: np.stack(values) for name, values in results.items()}


def computed(attention: KMemoryAttention, encoder_outputs: Any, mask: Any, query: Any) -> Any:
    memory = attention.prepare(encoder_outputs, mask)
    context, scores, _ = attention.read(query, memory)
    return {
        "alpha": memory.alpha,
        "rows": memory.rows,
        "scores": scores,
        "context": context,
        "alignment": attention.alignment(scores, memory),
    }


def check(attention: KMemoryAttention, mode: str, dtype: str) -> None:
    results = run(
        mode,
        lambda *arguments: computed(attention, *arguments),
        tensor(ENCODER_OUTPUTS, dtype),
        tensor(MASK, "bool"),
        tensor(QUERY, dtype),
    )
    for name, values in expected(attention).items():
        assert_close(results[name], values, dtype)


@encoder_scores
@decoder_scores
@axes
@position_encodings
@modes_and_dtypes
def test_each_variant_equals_the_equations(
    encoder_score: str,
    decoder_score: str,
    normalise_over: str,
    position_encoding: str | None,
    mode: str,
    dtype: str,
) -> None:
    attention = build(
        dtype=dtype,
        encoder_score=encoder_score,
        decoder_score=decoder_score,
        normalise_over=normalise_over,
        position_encoding=position_encoding,
        max_source_length=MAX_SOURCE_LENGTH,
    )
    check(attention, mode, dtype)


@encoder_scores
@position_encodings
@modes_and_dtypes
def test_biases_enter_before_the_position_encodings(
    encoder_score: str, position_encoding: str | None, mode: str, dtype: str
) -> None:
    attention = build(
        dtype=dtype,
        encoder_score=encoder_score,
        position_encoding=position_encoding,
        max_source_length=MAX_SOURCE_LENGTH,
        use_bias=True,
    )
    assert len(attention.weights) == 4
    check(attention, mode, dtype)


def test_without_biases_there_are_the_two_matrices_of_the_paper() -> None:
    shapes = [tuple(weight.shape) for weight in build().weights]
    assert shapes == [(ENCODER_UNITS, SLOTS), (QUERY_UNITS, SLOTS)]


@modes
@pytest.mark.parametrize("normalise_over", ["slots", "time"])
def test_a_hidden_layer_comes_before_the_energies(normalise_over: str, mode: str) -> None:
    attention = build(hidden_units=6, normalise_over=normalise_over)
    assert attention.encoder_hidden is not None
    kernel, bias = (as_array(w) for w in attention.encoder_hidden.weights)
    assert kernel.shape == (ENCODER_UNITS, 6)
    found = run(mode, attention.prepare, tensor(ENCODER_OUTPUTS), tensor(MASK, "bool"))
    (energy,) = (as_array(w) for w in attention.encoder_energy.weights)
    for i, (outputs, length) in enumerate(zip(ENCODER_OUTPUTS, LENGTHS, strict=True)):
        hidden = np.tanh(outputs @ kernel + bias)
        alpha = reference.k_memory_alpha(
            hidden, length, energy, "softmax", normalise_over, None, MAX_SOURCE_LENGTH
        )
        assert_close(found.alpha[i], alpha)
        assert_close(found.rows[i], reference.k_memory_rows(outputs, alpha))


def test_with_one_slot_the_decoder_weights_get_zeros_as_gradients() -> None:
    attention = KMemoryAttention(1)
    attention.build((None, None, 6), (None, None, 5))
    with tf.GradientTape() as tape:
        memory = attention.prepare(tensor(normal(2, 3, 6)))
        context, scores, _ = attention.read(tensor(normal(2, 4, 5)), memory)
        loss = tf.reduce_sum(context)
    np.testing.assert_array_equal(as_array(scores), np.ones([2, 4, 1]))
    (gradient,) = tape.gradient(loss, [attention.decoder_energy.kernel.value])
    np.testing.assert_array_equal(as_array(gradient), np.zeros([5, 1]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_spread_slots_begin_orthogonal_and_as_long_as_their_gain(dtype: str) -> None:
    attention = KMemoryAttention(SLOTS, spread=3.0, dtype=dtype)
    attention.prepare(tensor(ENCODER_OUTPUTS, dtype))
    kernel = as_array(attention.encoder_energy.kernel).astype(np.float64)
    accuracy = 0.2 if dtype == "bfloat16" else 0.02 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(kernel.T @ kernel, 9.0 * np.eye(SLOTS), atol=accuracy)


def test_options_of_slots_come_back_from_the_configuration() -> None:
    attention = build(hidden_units=6, spread=2.0)
    again = KMemoryAttention.from_config(attention.get_config())
    assert (again.hidden_units, again.spread) == (6, 2.0)
    assert again.get_config() == attention.get_config()


def test_two_slots_of_two_tokens_by_hand() -> None:
    # Softmax of (ln 2, 0) is (2/3, 1/3), of (0, ln 3) is (1/4, 3/4).
    attention = KMemoryAttention(2, normalise_over="slots", dtype="float64")
    identity = np.eye(2)
    attention.read(tensor(identity[None], "float64"), attention.prepare(identity[None]))
    attention.encoder_energy.kernel.assign([[np.log(2.0), 0.0], [0.0, np.log(3.0)]])
    attention.decoder_energy.kernel.assign(identity)
    memory = attention.prepare(tensor(identity[None], "float64"))
    assert_close(memory.alpha, [[[2 / 3, 1 / 3], [1 / 4, 3 / 4]]], "float64")
    assert_close(memory.rows, [[[2 / 3, 1 / 4], [1 / 3, 3 / 4]]], "float64")
    context, scores, _ = attention.read(tensor([[[np.log(2.0), 0.0]]], "float64"), memory)
    assert_close(scores, [[[2 / 3, 1 / 3]]], "float64")
    assert_close(context, [[[5 / 9, 5 / 12]]], "float64")
    assert_close(attention.alignment(scores, memory), [[[5 / 9, 5 / 12]]], "float64")


@pytest.mark.parametrize(("normalise_over", "axis"), [("slots", 2), ("time", 1)])
@position_encodings
def test_a_softmax_sums_to_one_over_the_named_axis(
    normalise_over: str, axis: int, position_encoding: str | None
) -> None:
    attention = build(
        normalise_over=normalise_over,
        position_encoding=position_encoding,
        max_source_length=MAX_SOURCE_LENGTH,
    )
    alpha = as_array(attention.prepare(tensor(ENCODER_OUTPUTS), MASK).alpha)
    sums = np.sum(alpha, axis=axis)
    assert_close(sums, np.where(MASK, 1.0, 0.0) if axis == 2 else np.ones([BATCH, SLOTS]))
    scores, _ = attention.score(tensor(QUERY), attention.prepare(tensor(ENCODER_OUTPUTS)))
    assert_close(np.sum(as_array(scores), axis=-1), np.ones([BATCH, QUERIES]))


@encoder_scores
@axes
@position_encodings
def test_padding_gets_alpha_zero_and_changes_nothing(
    encoder_score: str, normalise_over: str, position_encoding: str | None
) -> None:
    attention = build(
        encoder_score=encoder_score,
        normalise_over=normalise_over,
        position_encoding=position_encoding,
        max_source_length=MAX_SOURCE_LENGTH,
        use_bias=True,
    )
    memory = attention.prepare(tensor(ENCODER_OUTPUTS), MASK)
    filled = np.where(MASK[:, :, None], ENCODER_OUTPUTS, 1000.0)
    longer = np.concatenate([filled, np.full([BATCH, 6, ENCODER_UNITS], -1000.0)], axis=1)
    other = attention.prepare(tensor(longer), mask_of(LENGTHS, SOURCE_LENGTH + 6))
    assert not as_array(other.alpha)[~mask_of(LENGTHS, SOURCE_LENGTH + 6)].any()
    assert_close(other.rows, memory.rows)
    assert_close(other.alpha[:, :SOURCE_LENGTH], memory.alpha)
    assert_close(attention.read(tensor(QUERY), other)[0], attention.read(tensor(QUERY), memory)[0])


@encoder_scores
@axes
def test_a_source_without_real_tokens_has_an_empty_memory(
    encoder_score: str, normalise_over: str
) -> None:
    attention = build(encoder_score=encoder_score, normalise_over=normalise_over)
    memory = attention.prepare(tensor(ENCODER_OUTPUTS), mask_of((5, 0), SOURCE_LENGTH))
    assert not as_array(memory.rows)[1].any()
    assert not as_array(memory.alpha)[1].any()


@encoder_scores
@axes
def test_with_one_slot_and_a_softmax_the_context_is_the_only_row(
    encoder_score: str, normalise_over: str
) -> None:
    attention = build(1, encoder_score=encoder_score, normalise_over=normalise_over)
    memory = attention.prepare(tensor(ENCODER_OUTPUTS), MASK)
    context, scores, _ = attention.read(tensor(QUERY), memory)
    np.testing.assert_array_equal(as_array(scores), np.ones([BATCH, QUERIES, 1]))
    assert_close(context, np.repeat(as_array(memory.rows), QUERIES, axis=1))


def test_one_softmax_slot_over_the_slots_sums_the_source() -> None:
    memory = build(1, normalise_over="slots").prepare(tensor(ENCODER_OUTPUTS), MASK)
    assert_close(memory.rows[:, 0], np.sum(ENCODER_OUTPUTS * MASK[:, :, None], axis=1))


def test_memory_is_not_tiled_over_queries_nor_kept_on_the_layer() -> None:
    attention = build()
    before = dict(vars(attention))
    memory = attention.prepare(tensor(ENCODER_OUTPUTS), MASK)
    other = attention.prepare(tensor(ENCODER_OUTPUTS[::-1].copy()), MASK[::-1].copy())
    assert tuple(memory.rows.shape) == (BATCH, SLOTS, ENCODER_UNITS)
    assert tuple(memory.alpha.shape) == (BATCH, SOURCE_LENGTH, SLOTS)
    together = attention.read(tensor(QUERY), memory)[:2]
    assert vars(attention) == before
    for index in range(QUERIES):
        alone = attention.read(tensor(QUERY[:, index : index + 1]), memory)[:2]
        assert_close(alone, [x[:, index : index + 1] for x in together])
    swapped = attention.read(tensor(QUERY[::-1].copy()), other)[:2]
    assert_close([x[::-1] for x in swapped], list(together))


@decoder_scores
def test_a_linear_map_of_the_rows_gives_the_map_of_the_context(decoder_score: str) -> None:
    attention = build(decoder_score=decoder_score)
    memory = attention.prepare(tensor(ENCODER_OUTPUTS), MASK)
    context, scores, _ = attention.read(tensor(QUERY), memory)
    linear = tensor(normal(ENCODER_UNITS, 13))
    mapped = attention.combine(scores, ops.matmul(memory.rows, linear))
    assert_close(mapped, ops.matmul(context, linear))


def test_the_memory_is_a_record_of_arrays_and_no_source_position_is_scored() -> None:
    attention = build()
    memory = attention.prepare(tensor(ENCODER_OUTPUTS), MASK)
    assert memory._fields == ("rows", "alpha")
    assert all(ops.is_tensor(leaf) for leaf in memory)
    scores, state = attention.score(tensor(QUERY), memory)
    assert state == attention.initial_state(memory, QUERIES) == ()
    counts = attention.positions_scored(scores, memory)
    np.testing.assert_array_equal(as_array(counts), np.zeros([BATCH, QUERIES]))


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_position_encodings_refuse_longer_sources(mode: str) -> None:
    attention = build(position_encoding="mean_one", max_source_length=5)
    message = "`mask`: expected at most 5 tokens, as the attention"
    outputs = np.concatenate([ENCODER_OUTPUTS] * 2, axis=1)
    mask = np.concatenate([MASK, np.zeros_like(MASK)], axis=1)  # padding may be longer
    found = run(mode, attention.prepare, tensor(outputs), tensor(mask, "bool"))
    assert_close(found.rows, attention.prepare(tensor(ENCODER_OUTPUTS), MASK).rows)
    mask[0, :6] = True
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=message):
        run(mode, attention.prepare, tensor(outputs), tensor(mask, "bool"))


@modes
def test_without_a_mask_that_of_keras_counts(mode: str) -> None:
    embedding = keras.layers.Embedding(11, ENCODER_UNITS, mask_zero=True)
    ids = tensor([[3, 9, 4, 1, 7], [2, 8, 5, 0, 0]], "int32")
    attention = build()
    attached = run(mode, lambda ids: attention.prepare(embedding(ids)), ids)
    assert_close(attached, attention.prepare(embedding(ids), MASK))
    everywhere = attention.prepare(tensor(ENCODER_OUTPUTS))
    assert_close(everywhere, attention.prepare(tensor(ENCODER_OUTPUTS), np.ones_like(MASK)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_slots": 0}, "`num_slots` must be an int >= 1; got 0"),
        ({"hidden_units": 0}, "`hidden_units` must be an int >= 1; got 0"),
        ({"hidden_units": 2.5}, "`hidden_units` must be an int >= 1; got 2.5"),
        ({"spread": -1.0}, "`spread` must be positive; got -1.0"),
        ({"spread": float("inf")}, "`spread` must be a finite number; got inf"),
        ({"encoder_score": "relu"}, "`encoder_score` must be one of softmax, sigmoid; got 'relu'"),
        ({"decoder_score": "relu"}, "`decoder_score` must be one of softmax, sigmoid; got 'relu'"),
        ({"normalise_over": "units"}, "`normalise_over` must be one of slots, time; got 'units'"),
        ({"position_encoding": "sine"}, "`position_encoding` must be one of .*; got 'sine'"),
        ({"position_encoding": "masked"}, "`max_source_length`.*got None"),
        ({"position_encoding": "masked", "max_source_length": 0}, "`max_source_length`.*got 0"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KMemoryAttention(**{"num_slots": SLOTS, **arguments})

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from seq2seq_memattn.attention.additive import BahdanauAttention, additive_energies
from tests.inputs import MODES, mask_of, normal, randomise, run, tensor
from tests.reference import attention as reference
from tests.tolerances import as_array, assert_close

BATCH, QUERIES, SOURCE_LENGTH, ENCODER_UNITS, QUERY_UNITS, UNITS = 2, 3, 5, 7, 11, 4
LENGTHS = (5, 3)
ENCODER_OUTPUTS = normal(BATCH, SOURCE_LENGTH, ENCODER_UNITS)
MASK = mask_of(LENGTHS, SOURCE_LENGTH)
QUERY = normal(BATCH, QUERIES, QUERY_UNITS)


def build(dtype: str = "float32") -> BahdanauAttention:
    """An attention with random weights, including biases."""
    attention = BahdanauAttention(UNITS, dtype=dtype)
    attention.read(tensor(QUERY, dtype), attention.prepare(tensor(ENCODER_OUTPUTS, dtype)))
    randomise(attention)
    return attention


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scores_and_context_equal_the_equations(mode: str, dtype: str) -> None:
    attention = build(dtype)

    def read(outputs: Any, mask: Any, queries: Any) -> Any:
        return attention.read(queries, attention.prepare(outputs, mask))[:2]

    context, scores = run(
        mode, read, tensor(ENCODER_OUTPUTS, dtype), tensor(MASK, "bool"), tensor(QUERY, dtype)
    )
    W_k, b_k = [as_array(weight) for weight in attention.key_projection.weights]
    W_q, b_q = [as_array(weight) for weight in attention.query_projection.weights]
    vector = as_array(attention.energy.kernel)[:, 0]
    for row, length in enumerate(LENGTHS):
        outputs = ENCODER_OUTPUTS[row]
        for index in range(QUERIES):
            alpha = reference.bahdanau_scores(
                QUERY[row, index], outputs, W_k, b_k, W_q, b_q, vector, length
            )
            assert_close(scores[row, index], alpha, dtype)
            assert_close(context[row, index], reference.context(alpha, outputs), dtype)


def test_two_hidden_units_of_two_tokens_by_hand() -> None:
    # W_k s + (b_k + W_q h + b_q) is +-ln 3 / 2 for token 0, whose tanh is +-1/2, and 0 for token 1:
    # the energies are ln 2 * 1/2 + (-ln 2) * (-1/2) = ln 2, and 0.
    ln2, ln3 = np.log(2.0), np.log(3.0)
    attention = BahdanauAttention(2, dtype="float64")
    outputs, query = tensor([[[0.0], [1.0]]], "float64"), tensor([[[3.0]]], "float64")
    attention.read(query, attention.prepare(outputs))
    share = np.array([ln3 / 10, -ln3 / 10])
    attention.key_projection.set_weights([-5 * share[None], share])
    attention.query_projection.set_weights([share[None], share])
    attention.energy.set_weights([np.array([[ln2], [-ln2]])])
    context, scores, _ = attention.read(query, attention.prepare(outputs))
    assert_close(scores, [[[2 / 3, 1 / 3]]], "float64")
    assert_close(context, [[[1 / 3]]], "float64")


def test_units_must_be_positive() -> None:
    with pytest.raises(ValueError, match="`units` must be an int >= 1; got 0"):
        BahdanauAttention(0)


# The energies and their hand-written gradient

KEYS, QUERIES_OF_UNITS = normal(BATCH, SOURCE_LENGTH, UNITS), normal(BATCH, QUERIES, UNITS)
VECTOR, UPSTREAM = normal(UNITS), normal(BATCH, QUERIES, SOURCE_LENGTH)


def plain_energies(keys: Any, queries: Any, vector: Any) -> Any:
    return tf.reduce_sum(tf.tanh(keys[:, None] + queries[:, :, None]) * vector, axis=-1)


def gradients_of(energies: Any, inputs: list[Any], upstream: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        loss = tf.reduce_sum(energies(*inputs) * upstream)
    return tape.gradient(loss, inputs)


@pytest.mark.parametrize("mode", [*MODES, "xla"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_energies_and_their_gradients_equal_those_of_the_plain_formula(
    mode: str, dtype: str
) -> None:
    inputs = [tensor(x, dtype) for x in (KEYS, QUERIES_OF_UNITS, VECTOR)]
    assert_close(run(mode, additive_energies, *inputs), plain_energies(*inputs), dtype)
    upstream = tensor(UPSTREAM, dtype)
    gradients = run(mode, lambda *x: gradients_of(additive_energies, *x), inputs, upstream)
    assert_close(gradients, gradients_of(plain_energies, inputs, upstream), dtype)


def test_gradients_of_the_energies_equal_finite_differences() -> None:
    inputs = [KEYS, QUERIES_OF_UNITS, VECTOR]
    tensors = [tensor(x, "float64") for x in inputs]
    gradients = gradients_of(additive_energies, tensors, tensor(UPSTREAM, "float64"))
    step = 1e-5  # the relative error of a central difference is about step ** 2

    def loss(index: int, place: tuple[int, ...], change: float) -> float:
        moved = [x.copy() for x in inputs]
        moved[index][place] += change
        return float(np.sum(as_array(additive_energies(*map(tf.constant, moved))) * UPSTREAM))

    for index, gradient in enumerate(gradients):
        differences = np.zeros(gradient.shape)
        for place in np.ndindex(*gradient.shape):
            rise = loss(index, place, step) - loss(index, place, -step)
            differences[place] = rise / (2 * step)
        np.testing.assert_allclose(as_array(gradient), differences, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("units", [1, 6, 8])
@pytest.mark.parametrize("scale", [0.1, 1.0, 20.0])
def test_energies_from_exponentials_are_those_of_tanh(units: int, scale: float) -> None:
    keys = np.clip(normal(BATCH, SOURCE_LENGTH, units, scale=scale), -43, 43)
    queries = np.clip(normal(BATCH, QUERIES, units, seed=1, scale=scale), -43, 43)
    vector = normal(units, seed=2)
    expected = np.sum(np.tanh(keys[:, None] + queries[:, :, None]) * vector, axis=-1)
    got = run("xla", additive_energies, *(tensor(x) for x in (keys, queries, vector)))
    # tanh is computed of the rounded sum k + q, the exponentials of k and q: at 60, 4e-6 apart.
    np.testing.assert_allclose(as_array(got), expected, atol=1e-5)


def test_energies_from_exponentials_saturate() -> None:
    keys, queries = np.full([1, 2, 4], 1e4), np.full([1, 1, 4], -2.0)
    keys[0, 1] *= -1
    got = run("xla", additive_energies, *(tensor(x) for x in (keys, queries, np.arange(1.0, 5))))
    np.testing.assert_array_equal(as_array(got), [[[10.0, -10.0]]])

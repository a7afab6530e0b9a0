from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.attention.additive import BahdanauAttention
from seq2seq_memattn.attention.base import Attention, masked_softmax, softmax, source_mask
from seq2seq_memattn.attention.k_memory import KMemoryAttention
from seq2seq_memattn.attention.multiplicative import LuongAttention
from seq2seq_memattn.attention.no_attention import NoAttention
from tests.inputs import MODES, mask_of, normal, run, tensor
from tests.reference.activations import softmax as reference_softmax
from tests.tolerances import as_array, assert_close

BATCH, QUERIES, SOURCE_LENGTH, ENCODER_UNITS, QUERY_UNITS = 2, 3, 5, 7, 11
LENGTHS = (5, 3)
MASK = mask_of(LENGTHS, SOURCE_LENGTH)

ATTENTIONS: dict[str, Any] = {
    "k_memory": lambda **options: KMemoryAttention(4, use_bias=True, **options),
    "bahdanau": lambda **options: BahdanauAttention(13, **options),
    "luong_general": lambda **options: LuongAttention("general", QUERY_UNITS, **options),
    "none": NoAttention,
}
attentions = pytest.mark.parametrize("name", ATTENTIONS)


def test_an_attention_without_prepare_and_score_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Attention()


@attentions
def test_weights_sit_in_sublayers_that_carry_its_name_and_policy(name: str) -> None:
    attention = ATTENTIONS[name](name="reader", dtype="mixed_bfloat16")
    assert attention.built
    outputs, queries = normal(BATCH, SOURCE_LENGTH, ENCODER_UNITS), normal(2, QUERIES, QUERY_UNITS)
    context, scores, _ = attention.read(tensor(queries), attention.prepare(tensor(outputs), MASK))
    assert context.dtype == scores.dtype == "bfloat16"
    sublayers = attention._flatten_layers(include_self=False)
    assert all(layer.name.startswith("reader_") for layer in sublayers)
    assert all(layer.dtype_policy.name == "mixed_bfloat16" for layer in sublayers)
    assert all(weight.dtype == "float32" for weight in attention.weights)
    assert len(attention.weights) == sum(len(layer.weights) for layer in sublayers)


@attentions
def test_half_precision_agrees_with_single(name: str) -> None:
    outputs, queries = normal(BATCH, SOURCE_LENGTH, ENCODER_UNITS), normal(2, QUERIES, QUERY_UNITS)
    exact = ATTENTIONS[name](dtype="float32")
    exact.read(tensor(queries), exact.prepare(tensor(outputs), MASK))
    expected = exact.read(tensor(queries), exact.prepare(tensor(outputs), MASK))[:2]
    for dtype in ("float16", "bfloat16"):
        half = ATTENTIONS[name](dtype=f"mixed_{dtype}")
        half.read(tensor(queries), half.prepare(tensor(outputs), MASK))
        half.set_weights(exact.get_weights())
        assert_close(
            half.read(tensor(queries), half.prepare(tensor(outputs), MASK))[:2], expected, dtype
        )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("axis", [1, -1])
def test_a_masked_softmax_equals_that_of_the_real_positions(
    mode: str, dtype: str, axis: int
) -> None:
    energies = normal(BATCH, SOURCE_LENGTH, QUERIES)
    mask = np.random.default_rng(1).random(energies.shape) < 0.7
    scores = run(
        mode,
        lambda energies, mask: masked_softmax(energies, mask, axis=axis),
        tensor(energies, dtype),
        tensor(mask, "bool"),
    )
    assert scores.dtype == dtype
    moved, real = np.moveaxis(energies, axis, -1), np.moveaxis(mask, axis, -1)
    expected = np.zeros(moved.shape)
    for place in np.ndindex(*moved.shape[:-1]):
        expected[place][real[place]] = reference_softmax(moved[place][real[place]])
    assert_close(scores, np.moveaxis(expected, -1, axis), dtype)
    assert not as_array(scores)[~mask].any()


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_a_masked_softmax_bears_large_energies_and_no_real_position(dtype: str) -> None:
    energies = tensor([[60000.0, -60000.0, 0.0], [60000.0, -60000.0, 0.0]], dtype)
    scores = masked_softmax(energies, tensor([[False, True, True], [False] * 3], "bool"))
    np.testing.assert_array_equal(as_array(scores), [[0, 0, 1], [0, 0, 0]])


def test_a_softmax_over_one_entry_is_one_without_a_warning() -> None:
    scores = softmax(tensor(normal(BATCH, QUERIES, 1)))
    np.testing.assert_array_equal(as_array(scores), np.ones([BATCH, QUERIES, 1]))


def test_a_mask_given_wins_over_that_of_keras() -> None:
    outputs = tensor(normal(BATCH, SOURCE_LENGTH, ENCODER_UNITS))
    assert as_array(source_mask(outputs, None)).all()
    outputs._keras_mask = tensor(MASK, "bool")
    np.testing.assert_array_equal(as_array(source_mask(outputs, None)), MASK)
    given = mask_of((2, 4), SOURCE_LENGTH)
    np.testing.assert_array_equal(as_array(source_mask(outputs, given)), given)
    np.testing.assert_array_equal(as_array(source_mask(outputs, given.astype("int32"))), given)

from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

from seq2seq_memattn.losses import TokenCrossEntropy, summed_cross_entropy
from seq2seq_memattn.vocabulary import END_ID, PAD_ID
from tests.inputs import MODES, normal, run, tensor
from tests.tolerances import as_array, assert_close

VOCAB = 7
TARGETS = np.array(
    [[3, 5, END_ID, PAD_ID], [END_ID, PAD_ID, PAD_ID, PAD_ID], [4, 4, 6, END_ID]], np.int32
)
LOGITS = normal(3, 4, VOCAB, scale=3.0)


def expected_sum(logits: Any) -> float:
    """The loss of each real token, one by one."""
    total = 0.0
    for row, target in zip(logits, TARGETS, strict=True):
        for energies, token in zip(row, target, strict=True):
            if token != PAD_ID:
                total += np.log(np.exp(energies).sum()) - energies[token]
    return total


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_sum_is_that_of_the_real_tokens_one_by_one(mode: str, dtype: str) -> None:
    loss, num_tokens = run(mode, summed_cross_entropy, TARGETS, tensor(LOGITS, dtype))
    assert_close(loss, np.array(expected_sum(LOGITS)), dtype)
    assert float(num_tokens) == 3 + 1 + 4  # end tokens included
    assert keras.backend.standardize_dtype(num_tokens.dtype) == dtype


def test_a_token_by_hand() -> None:
    # Probabilities 1/2, 1/4, 1/4 of the tokens 0, 1 and 2.
    logits = tensor(np.log([[[2.0, 1.0, 1.0], [2.0, 1.0, 1.0]]]))
    loss, num_tokens = summed_cross_entropy(np.array([[END_ID, PAD_ID]]), logits)
    assert_close(loss, np.array(np.log(4.0)))
    assert float(num_tokens) == 1


def test_padding_changes_neither_loss_nor_gradient() -> None:
    import tensorflow as tf

    other = np.where((TARGETS == PAD_ID)[:, :, None], normal(3, 4, VOCAB, seed=1), LOGITS)
    gradients = []
    for values in (LOGITS, other):
        logits = tf.Variable(values, dtype="float32")
        with tf.GradientTape() as tape:
            loss, num_tokens = summed_cross_entropy(TARGETS, logits)
        assert_close(loss, np.array(expected_sum(LOGITS)))
        gradients.append(as_array(tape.gradient(loss, logits)))
    assert not gradients[0][TARGETS == PAD_ID].any()
    np.testing.assert_array_equal(gradients[0], gradients[1])


def test_the_mean_of_compile_is_over_all_tokens_of_the_batch() -> None:
    model = keras.Sequential([keras.Input([4, VOCAB]), keras.layers.Identity()])
    model.compile(loss=TokenCrossEntropy())
    loss = model.evaluate(LOGITS, TARGETS, batch_size=3, verbose=0)
    assert_close(np.array(loss), np.array(expected_sum(LOGITS) / 8))
    assert_close(TokenCrossEntropy()(TARGETS, tensor(LOGITS)), np.array(expected_sum(LOGITS) / 8))


def test_a_batch_of_padding_alone_has_no_loss() -> None:
    loss = TokenCrossEntropy()(ops.zeros_like(TARGETS), tensor(LOGITS))
    assert float(loss) == 0.0


def test_it_comes_back_from_its_config() -> None:
    loss = keras.losses.deserialize(keras.losses.serialize(TokenCrossEntropy(name="nats")))
    assert isinstance(loss, TokenCrossEntropy)
    assert loss.name == "nats"
    assert_close(loss(TARGETS, tensor(LOGITS)), np.array(expected_sum(LOGITS) / 8))

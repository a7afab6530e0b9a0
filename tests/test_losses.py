import json
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from seq2seq_memattn.losses import (
    TokenAccuracy,
    TokenCrossEntropy,
    summed_cross_entropy,
    token_cross_entropy,
)
from seq2seq_memattn.vocabulary import END_ID, PAD_ID
from tests.errors import refused
from tests.inputs import MODES, normal, run, tensor
from tests.marks import slow
from tests.running import run_python
from tests.tolerances import as_array, assert_close
from tests.weighted_fit import LOGITS, SENTENCES, TARGETS, TOKENS, VOCAB, Fitted, all_fitted

ON_JAX = """
import os
os.environ["KERAS_BACKEND"] = "jax"
from tests.weighted_fit import main
main()
"""


def expected_sum(logits: Any, label_smoothing: float = 0.0) -> float:
    """The sum of the losses of all real tokens, one by one."""
    total = 0.0
    for row, target in zip(logits, TARGETS, strict=True):
        for energies, token in zip(row, target, strict=True):
            if token != PAD_ID:
                log_probs = energies - np.log(np.exp(energies).sum())
                wanted = np.full(VOCAB, label_smoothing / VOCAB)
                wanted[token] += 1.0 - label_smoothing
                total -= np.sum(wanted * log_probs)
    return total


smoothings = pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.6])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@smoothings
def test_the_sum_is_that_of_the_real_tokens_one_by_one(
    mode: str, dtype: str, label_smoothing: float
) -> None:
    def summed(targets: Any, logits: Any) -> Any:
        return summed_cross_entropy(targets, logits, label_smoothing)

    loss, num_tokens = run(mode, summed, TARGETS, tensor(LOGITS, dtype))
    assert_close(loss, np.array(expected_sum(LOGITS, label_smoothing)), dtype)
    assert float(num_tokens) == 3 + 1 + 4  # including end tokens
    assert keras.backend.standardize_dtype(num_tokens.dtype) == dtype


def test_a_token_by_hand() -> None:
    # Tokens 0, 1 and 2 have probabilities 1/2, 1/4 and 1/4.
    logits = tensor(np.log([[[2.0, 1.0, 1.0], [2.0, 1.0, 1.0]]]))
    loss, num_tokens = summed_cross_entropy(np.array([[END_ID, PAD_ID]]), logits)
    assert_close(loss, np.array(np.log(4.0)))
    assert float(num_tokens) == 1
    # 0.3 is spread over three tokens, including the target.
    loss, _ = summed_cross_entropy(np.array([[END_ID, PAD_ID]]), logits, label_smoothing=0.3)
    assert_close(loss, np.array(0.1 * np.log(2.0) + 0.9 * np.log(4.0)))


@smoothings
def test_padding_changes_neither_loss_nor_gradient(label_smoothing: float) -> None:
    other = np.where((TARGETS == PAD_ID)[:, :, None], normal(3, 4, VOCAB, seed=1), LOGITS)
    gradients = []
    for values in (LOGITS, other):
        logits = tensor(values)
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss, num_tokens = summed_cross_entropy(TARGETS, logits, label_smoothing)
        assert_close(loss, np.array(expected_sum(LOGITS, label_smoothing)))
        gradients.append(as_array(tape.gradient(loss, logits)))
    assert not gradients[0][TARGETS == PAD_ID].any()
    np.testing.assert_array_equal(gradients[0], gradients[1])


@smoothings
def test_gradients_are_those_of_the_wanted_distribution(label_smoothing: float) -> None:
    logits = tensor(LOGITS)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss, _ = summed_cross_entropy(TARGETS, logits, label_smoothing)
    probabilities = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
    wanted = (1.0 - label_smoothing) * np.eye(VOCAB)[TARGETS] + label_smoothing / VOCAB
    real = (TARGETS != PAD_ID)[:, :, None]
    assert_close(tape.gradient(loss, logits), real * (probabilities - wanted))


@smoothings
def test_nothing_as_large_as_the_logits_is_made_beside_their_gradient(
    label_smoothing: float,
) -> None:
    summed = tf.function(lambda logits: summed_cross_entropy(TARGETS, logits, label_smoothing))
    graph = summed.get_concrete_function(tf.TensorSpec(LOGITS.shape)).graph
    kinds = {
        operation.type
        for operation in graph.get_operations()
        for output in operation.outputs
        if output.shape.num_elements() == LOGITS.size
    }
    # The kernel also returns its gradient. A broadcast to the same shape makes no copy.
    assert kinds <= {"Placeholder", "SparseSoftmaxCrossEntropyWithLogits", "Reshape", "BroadcastTo"}


def test_the_mean_of_compile_is_over_all_tokens_of_the_batch() -> None:
    model = keras.Sequential([keras.Input([4, VOCAB]), keras.layers.Identity()])
    model.compile(loss=TokenCrossEntropy())
    loss = model.evaluate(LOGITS, TARGETS, batch_size=3, verbose=0)
    assert_close(np.array(loss), np.array(expected_sum(LOGITS) / 8))
    for targets in (TARGETS, TARGETS.tolist()):
        found = TokenCrossEntropy()(targets, tensor(LOGITS))
        assert_close(found, np.array(expected_sum(LOGITS) / 8))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "mixed_bfloat16"])
def test_ids_of_large_vocabularies_are_not_rounded(dtype: str) -> None:
    logits = np.zeros([1, 1, 3000], np.float32)
    logits[0, 0, 2999] = 100.0
    loss = TokenCrossEntropy(dtype=dtype)
    assert float(loss(np.array([[2999]]), logits)) == 0.0
    restored = TokenCrossEntropy.from_config(loss.get_config())
    assert float(restored(np.array([[2998]]), logits)) == 100.0


def test_a_mask_that_logits_carry_does_not_change_the_mean() -> None:
    real = (TARGETS != PAD_ID)[:, :, None]
    model = keras.Sequential([keras.Input([4, VOCAB]), keras.layers.Masking()])
    model.compile(loss=TokenCrossEntropy())
    loss = model.evaluate(LOGITS * real, TARGETS, batch_size=3, verbose=0)
    assert_close(np.array(loss), np.array(expected_sum(LOGITS) / 8))


@pytest.fixture(scope="module", params=["tensorflow", *slow("jax")])
def weighted(request: pytest.FixtureRequest) -> dict[str, Fitted]:
    """An update by `fit` with each kind of weights."""
    if request.param == "tensorflow":
        return all_fitted()
    process = run_python("-c", ON_JAX)
    assert process.returncode == 0, process.stderr.decode()[-3000:]
    return json.loads(process.stdout)


@pytest.mark.parametrize(
    ("kind", "weights"),
    [("sentences", SENTENCES[:, None]), ("tokens", TOKENS), ("classes", TOKENS)],
)
def test_fit_weights_each_token_and_divides_by_their_number(
    weighted: dict[str, Fitted], kind: str, weights: Any
) -> None:
    loss, kernel = weighted[kind]
    weights = weights * (TARGETS != PAD_ID) / 8
    probabilities = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
    wanted = np.eye(VOCAB)[TARGETS]
    expected = -np.sum(weights * np.log(np.sum(probabilities * wanted, axis=-1)))
    assert_close(np.array(loss), np.array(expected))
    gradient = np.einsum("btu,btv->uv", LOGITS, weights[:, :, None] * (probabilities - wanted))
    assert_close(np.array(kernel), np.eye(VOCAB) - gradient)


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("sum", np.sum),
        (
            "mean_with_sample_weight",
            lambda losses: np.sum(losses) / TOKENS[TARGETS != PAD_ID].sum(),
        ),
        (None, np.asarray),
    ],
)
def test_other_reductions_leave_padding_out_too(reduction: str | None, expected: Any) -> None:
    losses, _ = token_cross_entropy(TARGETS, tensor(LOGITS))
    loss = TokenCrossEntropy(reduction=reduction)(TARGETS, tensor(LOGITS), TOKENS)
    assert_close(loss, expected(as_array(losses) * TOKENS))


def test_weights_of_tokens_may_have_a_last_axis_of_one() -> None:
    loss, logits = TokenCrossEntropy(), tensor(LOGITS[:, : len(LOGITS)])
    targets, weights = TARGETS[:, : len(LOGITS)], TOKENS[:, : len(LOGITS)]
    expected = as_array(loss(targets, logits, weights))  # batch and length are equal here
    assert_close(loss(targets[:, :, None], logits, weights[:, :, None]), expected)
    for wrong in (weights[:, None, :], weights[None, None], np.float32(1.0)):
        with pytest.raises(ValueError, match="`sample_weight`: expected a weight for each"):
            loss(targets, logits, wrong)
    for wrong, axis in ((weights[:1], "batch"), (weights[:1, 0], "batch"), (TOKENS, "length")):
        for each in (loss, TokenAccuracy()):
            with pytest.raises(ValueError, match=f"`sample_weight`: expected {axis} "):
                each(targets, logits, wrong)


def test_a_batch_of_padding_alone_has_no_loss() -> None:
    loss = TokenCrossEntropy()(ops.zeros_like(TARGETS), tensor(LOGITS))
    assert float(loss) == 0.0


def test_padding_may_have_another_id() -> None:
    other = VOCAB - 1
    ids = np.arange(VOCAB)
    ids[[PAD_ID, other]] = other, PAD_ID
    targets, logits = ids[TARGETS], tensor(LOGITS[:, :, ids])
    loss = TokenCrossEntropy(label_smoothing=0.2, pad_id=other)
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    expected = np.array(expected_sum(LOGITS, 0.2) / 8)
    for each in (loss, again):
        assert_close(each(targets, logits), expected)
    usual = as_array(TokenCrossEntropy(label_smoothing=0.2)(targets, logits))
    assert not np.allclose(usual, expected)


def test_padding_may_have_an_id_that_is_none_of_the_vocabulary() -> None:
    targets = np.where(TARGETS == PAD_ID, -100, TARGETS)
    loss = TokenCrossEntropy(label_smoothing=0.2, pad_id=-100)
    assert_close(loss(targets, tensor(LOGITS)), np.array(expected_sum(LOGITS, 0.2) / 8))
    usual = as_array(TokenCrossEntropy()(TARGETS, tensor(LOGITS)))
    assert_close(TokenCrossEntropy()(TARGETS.astype(np.uint64), tensor(LOGITS)), usual)
    for wrong in (targets, TARGETS.astype(np.int64) + 2**32):
        with pytest.raises(ValueError, match="`y_true`: expected ids in 0.."):
            TokenCrossEntropy()(wrong, tensor(LOGITS))


def test_it_comes_back_from_its_config() -> None:
    loss = keras.losses.deserialize(
        keras.losses.serialize(TokenCrossEntropy(label_smoothing=0.2, name="nats"))
    )
    assert isinstance(loss, TokenCrossEntropy)
    assert loss.name == "nats"
    exact = TokenCrossEntropy.from_config(TokenCrossEntropy(dtype="float64").get_config())
    assert exact.dtype == "float64"
    assert_close(loss(TARGETS, tensor(LOGITS)), np.array(expected_sum(LOGITS, 0.2) / 8))


@pytest.mark.parametrize("label_smoothing", [-0.1, 1.0])
def test_a_share_out_of_its_range_is_refused(label_smoothing: float) -> None:
    with pytest.raises(ValueError, match=rf"`label_smoothing` .*; got {label_smoothing}"):
        TokenCrossEntropy(label_smoothing)


# Accuracy


def right_share(targets: Any, logits: Any, weights: Any = 1.0) -> float:
    real = (targets != PAD_ID) * weights
    return float(np.sum((np.argmax(logits, axis=-1) == targets) * real) / np.sum(real))


@pytest.mark.parametrize("has_axis", [False, True])
def test_accuracy_is_the_share_of_real_tokens_with_the_highest_logit(has_axis: bool) -> None:
    targets = TARGETS[:, :, None] if has_axis else TARGETS
    metric = TokenAccuracy()
    for half in (slice(0, 1), slice(1, None)):
        metric.update_state(targets[half], tensor(LOGITS[half]))
    assert_close(metric.result(), np.array(right_share(TARGETS, LOGITS)))
    for weights in (SENTENCES, TOKENS):
        per_token = weights if weights.ndim == 2 else weights[:, None]
        found = TokenAccuracy()(targets, tensor(LOGITS), sample_weight=weights)
        assert_close(found, np.array(right_share(TARGETS, LOGITS, per_token)))
    other = TokenAccuracy(pad_id=int(TARGETS[0, 0]))
    assert TokenAccuracy.from_config(other.get_config()).pad_id == other.pad_id


def test_accuracy_counts_tokens_alike_in_batches_of_different_lengths() -> None:
    metric, right, real = TokenAccuracy(), 0.0, 0
    for length, share in ((2, 1.0), (10, 0.2)):
        targets = np.full((3, length), 5)
        targets[0, length // 2 :] = PAD_ID
        logits = np.eye(8, dtype=np.float32)[np.where(np.arange(length) < share * length, 5, 6)]
        logits = np.repeat(logits[None], 3, axis=0)
        metric.update_state(targets, tensor(logits))
        is_real = targets != PAD_ID
        right += np.sum((np.argmax(logits, axis=-1) == targets) * is_real)
        real += np.sum(is_real)
    assert_close(metric.result(), np.array(right / real))


def test_accuracy_does_not_count_the_padding_that_the_mask_of_the_inputs_lets_through() -> None:
    # Inputs `ids[:, :-1]` keep the end token of a shorter target, where the target is padding.
    ids = np.array([[1, 3, 4, 5, 2], [1, 3, 2, 0, 0]])
    target = keras.Input((None,), dtype="int32")
    embedded = keras.layers.Embedding(6, 6, mask_zero=True)(target)
    model = keras.Model(target, keras.layers.Dense(6)(embedded))
    model.compile("sgd", TokenCrossEntropy(), metrics=["accuracy", TokenAccuracy()])
    follows = np.zeros((6, 6), np.float32)  # what a token predicts
    for before, after in zip((1, 3, 4, 5), (3, 4, 5, 2), strict=True):
        follows[before, after] = 1.0
    model.layers[1].set_weights([np.eye(6, dtype=np.float32)])
    model.layers[2].set_weights([follows, np.eye(6, dtype=np.float32)[3] * 0.5])
    result = model.evaluate(ids[:, :-1], ids[:, 1:], verbose=0, return_dict=True)
    # Five of six tokens are right: after 3, the model writes 4, not the end. Keras counts seven.
    assert result["token_accuracy"] == pytest.approx(5 / 6)
    assert result["accuracy"] == pytest.approx(5 / 7)
    stopping = keras.callbacks.EarlyStopping("token_accuracy")
    stopping.set_model(model)
    stopping._set_monitor_op()
    assert stopping.monitor_op is ops.greater


def test_one_hot_targets_are_refused() -> None:
    one_hot, logits = np.zeros([2, 3, 5], np.int32), np.zeros([2, 3, 5], np.float32)
    message = "`y_true`: expected one id for each token; got 5 numbers, such as a one-hot vector."
    assert refused(TokenCrossEntropy(), one_hot, logits) == message
    assert refused(TokenAccuracy(), one_hot, logits) == message

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from seq2seq_memattn.compute.precision import dtype_policy
from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.data.batching import fill_rows
from seq2seq_memattn.losses import TokenCrossEntropy
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.search.prepared import PreparedModel
from seq2seq_memattn.training.distributed.strategies import one_device
from seq2seq_memattn.training.make import make_optimizer
from seq2seq_memattn.training.updates.loss_scale import LossScale
from seq2seq_memattn.training.updates.tensorflow_update import TensorFlowUpdater
from seq2seq_memattn.vocabulary import END_ID, PAD_ID
from tests.inputs import randomise
from tests.marks import slow
from tests.running import run_python
from tests.tolerances import as_array, assert_close
from tests.training.runs import MODEL, TRAINING

BATCH = {
    "source": [[3, 4, 6, 5, END_ID], [4, END_ID, 0, 0, 0], [END_ID, 0, 0, 0, 0]],
    "target_inputs": [[1, 3, 6, 6], [1, 5, 4, 0], [1, 0, 0, 0]],
    "target_outputs": [[3, 6, 6, END_ID], [5, 4, END_ID, 0], [END_ID, 0, 0, 0]],
}
NUM_TOKENS = 8


def batch() -> dict[str, Any]:
    return {name: tf.constant(ids, tf.int32) for name, ids in BATCH.items()}


def make(
    model_config: ModelConfig = MODEL,
    config: TrainingConfig = TRAINING,
    dropout: float = 0.0,
    strategy: Any = None,
    teacher: Any = None,
) -> tuple[Seq2Seq, Any, TensorFlowUpdater]:
    strategy = strategy or one_device()
    with strategy.scope():
        policy = dtype_policy(config.precision)
        model = Seq2Seq(dataclasses.replace(model_config, dropout=dropout), dtype=policy)
        randomise(model)
        optimizer = make_optimizer(model, config)
    return model, optimizer, TensorFlowUpdater(strategy, model, optimizer, config, teacher)


def state(*parts: Any) -> list[Any]:
    return [as_array(variable) for part in parts for variable in part.variables]


def manual_gradients(model: Seq2Seq, label_smoothing: float = 0.0) -> tuple[float, list[Any]]:
    """The mean loss over target tokens and its gradients, computed with Keras."""
    ids = batch()
    with tf.GradientTape() as tape:
        loss = TokenCrossEntropy(label_smoothing)(ids["target_outputs"], model(ids, training=False))
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    return float(loss), [as_array(tf.convert_to_tensor(gradient)) for gradient in gradients]


@pytest.mark.parametrize(
    ("options", "clip_norm", "embedding_clip_norm", "label_smoothing"),
    [
        ({"tied_embeddings": "all", "mixing_units": 5, "attention": "bahdanau"}, 0.1, 0.003, 0.2),
        *slow(
            ({"attention": "none"}, 0.0, 0.0, 0.0),
            ({}, 1e3, 0.02, 0.3),
            ({"attention": "bahdanau"}, 0.1, 0.003, 0.0),
            ({"tied_embeddings": "target", "mixing_units": 5}, 1e3, 0.0, 0.0),
        ),
    ],
)
def test_updates_equal_adam_on_the_clipped_mean_gradient(
    options: dict[str, Any], clip_norm: float, embedding_clip_norm: float, label_smoothing: float
) -> None:
    config = dataclasses.replace(
        TRAINING,
        clip_norm=clip_norm,
        embedding_clip_norm=embedding_clip_norm,
        adam_epsilon=1e-3,
        label_smoothing=label_smoothing,
    )
    model, _, updater = make(dataclasses.replace(MODEL, **options), config)
    weights = [as_array(variable) for variable in model.trainable_variables]
    first = [np.zeros_like(weight) for weight in weights]
    second = [np.zeros_like(weight) for weight in weights]
    for step in (1, 2):
        loss, gradients = manual_gradients(model, label_smoothing)
        norm = np.sqrt(sum(np.sum(gradient**2) for gradient in gradients))
        assert norm > 0.2
        result = updater(batch())
        assert result.is_applied
        assert result.num_tokens == NUM_TOKENS
        assert_close(np.array(result.loss), np.array(loss))
        assert_close(np.array(result.gradient_norm), np.array(norm))
        scale = min(1.0, clip_norm / norm) if clip_norm else 1.0
        for i, mean_gradient in enumerate(gradients):
            gradient = scale * mean_gradient
            if embedding_clip_norm and "embedding" in model.trainable_variables[i].path:
                assert np.linalg.norm(gradient) > embedding_clip_norm
                gradient = gradient * embedding_clip_norm / np.linalg.norm(gradient)
            # Kingma and Ba (2015), end of section 2: epsilon hat is added to sqrt(v).
            first[i] = 0.9 * first[i] + 0.1 * gradient
            second[i] = 0.999 * second[i] + 0.001 * gradient**2
            rate = config.learning_rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            weights[i] = weights[i] - rate * first[i] / (np.sqrt(second[i]) + config.adam_epsilon)
        for variable, expected in zip(model.trainable_variables, weights, strict=True):
            assert_close(as_array(variable), expected)


@pytest.mark.slow
def test_a_learning_rate_that_changes_is_that_of_the_next_update() -> None:
    model, optimizer, updater = make()
    updater(batch())  # compiles the optimiser
    before = [as_array(variable) for variable in model.trainable_variables]
    moved = []
    for rate in (0.0, 1e-3):
        optimizer.learning_rate = rate
        assert updater(batch()).is_applied
        moved.append(
            max(
                np.abs(as_array(variable) - value).max()
                for variable, value in zip(model.trainable_variables, before, strict=True)
            )
        )
    assert moved[0] == 0.0
    assert 5e-4 < moved[1] < 1.5e-3  # Adam's steps are about as large as the learning rate


def longer_batch() -> dict[str, Any]:
    paddings = [[0, 0], [0, 3]]
    return {name: tf.pad(ids, paddings, constant_values=PAD_ID) for name, ids in batch().items()}


def filled_batch() -> dict[str, Any]:
    return fill_rows({name: np.array(ids, np.int32) for name, ids in BATCH.items()}, 5)


@pytest.mark.parametrize("pad", [longer_batch, *slow(filled_batch)])
def test_padding_changes_an_update_by_rounding_only(pad: Callable[[], dict[str, Any]]) -> None:
    model, optimizer, updater = make()
    before = state(model, optimizer)
    updater(batch())
    expected = state(model, optimizer)
    for variable, value in zip([*model.variables, *optimizer.variables], before, strict=True):
        variable.assign(value)
    assert updater(pad()).num_tokens == NUM_TOKENS
    for ours, theirs in zip(state(model, optimizer), expected, strict=True):
        assert_close(ours, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"tied_embeddings": "all", "mixing_units": 5}])
def test_compiled_by_xla_an_update_is_the_same(options: dict[str, Any]) -> None:
    model_config = dataclasses.replace(MODEL, **options)
    config = dataclasses.replace(TRAINING, label_smoothing=0.1)
    plain, _, updater = make(model_config, config)
    expected = updater(batch())
    compiled, _, updater = make(model_config, dataclasses.replace(config, jit_compile=True))
    assert_close(np.array(updater(batch())[:3]), np.array(expected[:3]))
    for one, other in zip(plain.variables, compiled.variables, strict=True):
        assert_close(as_array(one), as_array(other))


def test_an_update_that_is_not_finite_is_not_applied() -> None:
    model, optimizer, updater = make()
    assert updater(batch()).is_applied
    good = as_array(model.logits.kernel)
    poisons = {"NaN": np.nan, "infinity": np.inf, "a gradient that overflows": 1e30}
    for poison in poisons.values():
        poisoned = good.copy()
        poisoned[2] = poison
        model.logits.kernel.assign(poisoned)
        before = state(model, optimizer)
        result = updater(batch())
        assert not result.is_applied
        assert not np.isfinite(result.loss + result.gradient_norm)
        for ours, theirs in zip(state(model, optimizer), before, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    model.logits.kernel.assign(good)
    assert updater(batch()).is_applied
    assert int(optimizer.iterations) == 2


@pytest.mark.slow
def test_dropout_is_drawn_anew_at_each_update_and_follows_the_seeds() -> None:
    config = dataclasses.replace(TRAINING, learning_rate=1e-30)
    model, _, updater = make(config=config, dropout=0.4)
    seeds = [v for v in model.variables if v.name == "seed_generator_state"]
    first = [as_array(seed) for seed in seeds]
    losses = [updater(batch()).loss for _ in range(3)]
    assert len(set(losses)) == 3
    for seed, value in zip(seeds, first, strict=True):
        seed.assign(value)
    assert [updater(batch()).loss for _ in range(3)] == losses
    again = Seq2Seq(model.config).variables
    for seed, value in zip([v for v in again if v.name == seeds[0].name], first, strict=True):
        np.testing.assert_array_equal(as_array(seed), value)


def test_the_optimiser_is_made_as_configured() -> None:
    model, optimizer, _ = make(config=dataclasses.replace(TRAINING, adam_epsilon=8e-7))
    assert isinstance(optimizer, keras.optimizers.Adam)
    assert float(optimizer.learning_rate) == pytest.approx(TRAINING.learning_rate)
    assert optimizer.epsilon == 8e-7
    # The optimiser's variables exist before the first update, so a checkpoint can hold them.
    assert len(optimizer.variables) == 2 + 2 * len(model.trainable_variables)


@pytest.mark.parametrize("accumulate", [2, *slow(3, 4)])
def test_a_batch_in_parts_gives_the_update_of_the_whole(accumulate: int) -> None:
    config = dataclasses.replace(TRAINING, optimizer="sgd", clip_norm=0.1)
    whole, _, one = make(config=config)
    parts, _, several = make(config=dataclasses.replace(config, accumulate=accumulate))
    for _ in range(2):
        ours, theirs = several(batch()), one(batch())
        assert ours.num_tokens == theirs.num_tokens == NUM_TOKENS
        assert_close(np.array(ours[:3]), np.array(theirs[:3]))
    for ours, theirs in zip(state(parts), state(whole), strict=True):
        assert_close(ours, theirs)


@pytest.mark.slow
def test_a_scaled_loss_gives_the_same_update() -> None:
    model, _, plain = make()
    same, _, scaled = make()
    expected = plain(batch())
    # Scaling by a power of two does not round floating-point numbers.
    assert scaled(batch(), 2.0**10) == expected
    for ours, theirs in zip(state(same), state(model), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_two_replicas_update_as_one_device_does() -> None:
    process = run_python("-m", "tests.training.two_replicas")
    assert process.returncode == 0, process.stderr
    assert float(process.stdout) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["k_memory:3", "bahdanau", "none"])
def test_products_in_bfloat16_change_an_update_by_their_rounding_only(attention: str) -> None:
    config = dataclasses.replace(TRAINING, clip_norm=0.0)
    rounded = dataclasses.replace(config, precision="bfloat16_products")
    model_config = dataclasses.replace(MODEL, attention=attention)
    single, _, plain = make(model_config, config)
    model, _, updater = make(model_config, rounded)
    expected, result = plain(batch()), updater(batch())
    assert result.loss != expected.loss
    assert result.loss == pytest.approx(expected.loss, rel=5e-3)
    assert result.gradient_norm == pytest.approx(expected.gradient_norm, rel=2e-2)
    assert {w.dtype for w in model.trainable_variables} == {"float32"}
    _, state = PreparedModel(model).start(batch()["source"], 1)
    assert {array.dtype for array in keras.tree.flatten(state)} == {tf.float32}


@pytest.mark.parametrize("precision", slow("mixed_bfloat16", "mixed_float16", "float64"))
def test_updates_in_other_precisions_are_nearly_those_of_float32(precision: str) -> None:
    config = dataclasses.replace(TRAINING, precision=precision)
    scale = LossScale.first(precision).value
    expected, result = make()[2](batch()), make(config=config)[2](batch(), scale)
    assert result.is_applied
    assert result[:3] == pytest.approx(expected[:3], rel=2e-2)

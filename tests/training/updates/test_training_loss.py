import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from seq2seq_memattn.attention.flexible import FlexibleState
from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.data.batching import fill_rows
from seq2seq_memattn.layers.teacher_forcing import OUTPUTS_ONLY, Asked
from seq2seq_memattn.losses import summed_cross_entropy
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.training.updates.training_loss import TrainingLoss, total, unevenness
from tests.inputs import MODES, randomise, run
from tests.tolerances import as_array, assert_close
from tests.training.runs import MODEL, TRAINING
from tests.training.updates.test_tensorflow_update import batch, make

FLEXIBLE = dataclasses.replace(MODEL, attention="flexible", dropout=0.0)
LENGTHS = (4, 3, 1)


def model_of(config: Any = FLEXIBLE) -> Seq2Seq:
    model = Seq2Seq(config)
    randomise(model)
    return model


def strengths_by_steps(model: Seq2Seq) -> Any:
    """The strength g of equation 8 after each single step of the cell, 0 on padding."""
    ids = batch()
    memory, cell_states = model.encode(ids["source"])
    state = model.cell.initial_state(memory, 1, cell_states)
    embedded, found = model.target_embedding(ids["target_inputs"]), []
    for step in range(max(LENGTHS)):
        _, _, state = model.cell(embedded[:, step, None], memory, state)
        found.append(as_array(FlexibleState(*state.attention).strength)[:, 0])
    real = np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None]
    return np.stack(found, axis=1) * real


@pytest.mark.parametrize("mode", MODES)
def test_strengths_are_those_of_single_steps(mode: str) -> None:
    model, ids = model_of(), batch()

    def call(source: Any, target_inputs: Any) -> Any:
        inputs = {"source": source, "target_inputs": target_inputs}
        return model(inputs, training=True, asked=OUTPUTS_ONLY)

    logits, decoded = run(mode, call, ids["source"], ids["target_inputs"])
    assert_close(decoded.strengths, strengths_by_steps(model))
    assert_close(logits, as_array(model(ids, training=True)))


def test_the_loss_is_equation_9() -> None:
    model, ids = model_of(), batch()
    config = dataclasses.replace(TRAINING, strength_weight=0.7)
    loss = TrainingLoss(model, config)
    found, num_tokens = loss(ids["target_outputs"], model(ids, training=True, asked=loss.asked))
    entropy, _ = summed_cross_entropy(ids["target_outputs"], model(ids, training=True))
    means = strengths_by_steps(model).sum(axis=1) / LENGTHS
    assert_close(found["strength"], -0.7 * means.sum())
    assert_close(total(found), as_array(entropy) - 0.7 * means.sum())
    assert as_array(num_tokens) == sum(LENGTHS)


def test_rows_that_fill_a_batch_add_nothing_to_it() -> None:
    model, ids = model_of(), batch()
    loss = TrainingLoss(model, dataclasses.replace(TRAINING, strength_weight=0.7))
    filled = fill_rows({name: as_array(rows) for name, rows in ids.items()}, 5)
    assert len(filled["source"]) == 5 > len(LENGTHS)
    found, expected = (
        loss(rows["target_outputs"], model(rows, training=True, asked=loss.asked))
        for rows in (filled, ids)
    )
    assert_close(total(found[0]), as_array(total(expected[0])))
    assert_close(found[1], as_array(expected[1]))


def test_without_a_weight_it_is_the_cross_entropy() -> None:
    model, ids = model_of(), batch()
    loss = TrainingLoss(model, dataclasses.replace(TRAINING, label_smoothing=0.1))
    assert loss.asked is None
    found, num_tokens = loss(ids["target_outputs"], model(ids, training=True))
    expected = summed_cross_entropy(ids["target_outputs"], model(ids, training=True), 0.1)
    assert list(found) == ["cross_entropy"]
    assert_close([total(found), num_tokens], [as_array(x) for x in expected])


@pytest.mark.slow
def test_training_with_it_makes_penalties_stronger() -> None:
    means = []
    for weight in (0.0, 3.0):
        config = dataclasses.replace(TRAINING, strength_weight=weight)
        model, _, updater = make(FLEXIBLE, config)
        for _ in range(12):
            assert updater(batch()).is_applied
        strengths = as_array(model(batch(), asked=OUTPUTS_ONLY)[1].strengths)
        means.append(strengths.sum() / np.count_nonzero(strengths))
    assert means[1] > means[0] + 0.05


def test_an_attention_without_penalties_is_refused() -> None:
    config = TrainingConfig(strength_weight=0.1)
    with pytest.raises(ValueError, match=r"flexible attention.*got 0\.1 with k_memory:3"):
        TrainingLoss(model_of(dataclasses.replace(FLEXIBLE, attention="k_memory:3")), config)


def test_unevenness_is_the_divergence_of_an_even_use_from_the_mean_use() -> None:
    scores = np.random.default_rng(0).uniform(size=(3, 4, 5)).astype(np.float32)
    real = np.arange(4) < np.array([[4], [2], [1]])
    shares = scores / scores.sum(axis=-1, keepdims=True)
    use = shares[real].mean(axis=0)
    assert_close(unevenness(scores, real), -np.log(5 * use).mean())
    even = np.full([3, 4, 5], 0.3, np.float32)  # sigmoids need not sum to 1
    assert abs(float(unevenness(even, real))) < 1e-6
    one = np.zeros([3, 4, 5], np.float32)
    one[:, :, 2] = 0.3
    assert np.isfinite(unevenness(one, real))


def test_unevenness_revives_a_slot_that_is_hardly_read() -> None:
    energies = tf.constant([[[0.0, 0.0, 0.0, -30.0]]])
    with tf.GradientTape() as tape:
        tape.watch(energies)
        uneven = unevenness(tf.nn.softmax(energies), np.array([[True]]))
    gradient = as_array(tape.gradient(uneven, energies))[0, 0]
    assert_close(gradient, [1 / 3 - 1 / 4] * 3 + [-1 / 4])


@pytest.mark.parametrize("input_feeding", [True, False])
def test_the_loss_adds_the_unevenness_for_each_token(input_feeding: bool) -> None:
    config = dataclasses.replace(
        FLEXIBLE, attention="k_memory:3", input_feeding=input_feeding, decoder_score="sigmoid"
    )
    model, ids = model_of(config), batch()
    loss = TrainingLoss(model, dataclasses.replace(TRAINING, balance_weight=0.7))
    found, num_tokens = loss(ids["target_outputs"], model(ids, training=True, asked=loss.asked))
    logits, decoded = model(ids, training=False, asked=loss.asked)
    real = as_array(ids["target_outputs"]) != 0
    uneven = as_array(unevenness(decoded.scores, real))
    assert uneven > 0.0
    entropy, _ = summed_cross_entropy(ids["target_outputs"], logits)
    assert_close(found["balance"], 0.7 * uneven * sum(LENGTHS))
    assert_close(total(found), as_array(entropy) + 0.7 * uneven * sum(LENGTHS))
    assert as_array(num_tokens) == sum(LENGTHS)


def test_training_with_it_evens_out_the_use_of_slots() -> None:
    config = dataclasses.replace(FLEXIBLE, attention="k_memory:3")
    found = []
    for weight in (0.0, 3.0):
        training = dataclasses.replace(TRAINING, balance_weight=weight)
        model, _, updater = make(config, training)
        for variable in model.cell.attention.decoder_energy.weights:
            variable.assign(5.0 * variable)
        for _ in range(12):
            assert updater(batch()).is_applied
        scores = model(batch(), asked=Asked(scores=True))[1].scores
        found.append(float(unevenness(scores, as_array(batch()["target_outputs"]) != 0)))
    assert found[1] < 0.5 * found[0]


def test_an_attention_without_slots_cannot_be_balanced() -> None:
    config = TrainingConfig(balance_weight=0.1)
    with pytest.raises(ValueError, match=r"for k_memory, which has slots; got 0\.1 with flexible"):
        TrainingLoss(model_of(), config)


@pytest.mark.parametrize("mode", MODES)
def test_dropped_slots_are_whole_rows_of_a_sentence_and_none_outside_of_training(mode: str) -> None:
    config = dataclasses.replace(FLEXIBLE, attention="k_memory:40", slot_dropout=0.3)
    model, source = model_of(config), batch()["source"]
    rows = as_array(run(mode, lambda ids: model.encode(ids)[0].rows, source))
    dropped = as_array(run(mode, lambda ids: model.encode(ids, training=True)[0].rows, source))
    gone = (dropped == 0.0).all(axis=-1)
    assert 0.1 < gone.mean() < 0.5
    assert (gone[0] != gone[1]).any()
    assert_close(dropped[~gone], rows[~gone] / 0.7)

"""Trains each public layer on two replicas.

A program of its own, because devices must be set up first. It prints a line for each trained layer.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from seq2seq_memattn.compute.seeds import SeedGenerator
from seq2seq_memattn.losses import TokenCrossEntropy
from seq2seq_memattn.model import Seq2Seq
from tests.test_conformance import LAYERS, built, copy_task, results, tiny


def summed(name: str, layer: Any) -> Any:
    return sum(tf.reduce_sum(result) for result in results(name, layer))


def check_layer(strategy: tf.distribute.Strategy, name: str) -> None:
    """One update of two replicas with the same inputs equals two gradients applied at once."""
    with strategy.scope():
        layer = built(name)
        optimizer = keras.optimizers.SGD(0.01)
        optimizer.build(layer.trainable_variables)

    def replica() -> Any:
        with tf.GradientTape() as tape:
            loss = summed(name, layer)
        variables = layer.trainable_variables
        gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
        if variables:
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss, gradients

    before = layer.get_weights()
    losses, gradients = strategy.run(replica)
    first, second = strategy.experimental_local_results(losses)
    np.testing.assert_allclose(first, second, rtol=1e-5)
    gradients = [strategy.experimental_local_results(gradient)[0] for gradient in gradients]
    moved = [v for v in before if v.dtype.kind == "f"]
    for old, new, gradient in zip(moved, layer.trainable_variables, gradients, strict=True):
        expected = old - 2 * 0.01 * tf.convert_to_tensor(gradient)
        np.testing.assert_allclose(new.numpy(), expected, rtol=1e-4, atol=1e-5)


def check_fit(strategy: tf.distribute.Strategy) -> None:
    """`fit` on two replicas gives the losses of one replica, even if a batch has one example."""
    x, y = copy_task(33)
    losses = []
    for scope in (strategy.scope(), tf.distribute.get_strategy().scope()):
        with scope:
            model = Seq2Seq(tiny("k_memory:4", dropout=0.0))
            model.compile(keras.optimizers.Adam(0.03), TokenCrossEntropy())
        history = model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
        losses.append(history.history["loss"])
    assert np.isfinite(losses).all()
    assert losses[0][1] < losses[0][0]
    np.testing.assert_allclose(losses[0], losses[1], rtol=0.1)


def check_seeds(strategy: tf.distribute.Strategy) -> None:
    """Each replica draws different numbers, and new ones at each call."""
    with strategy.scope():
        generator = SeedGenerator(3)
    ones = tf.ones([100])

    @tf.function
    def masks() -> Any:
        return strategy.run(lambda: keras.random.dropout(ones, 0.5, seed=generator))

    drawn = [
        tuple(mask.numpy())
        for _ in range(2)
        for mask in strategy.experimental_local_results(masks())
    ]
    assert len(set(drawn)) == 4


def main() -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_visible_devices([], "GPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    assert strategy.num_replicas_in_sync == 2
    for name in LAYERS:
        if " " not in name and name != "Seq2Seq":  # one of each class
            check_layer(strategy, name)
            print("trained", name)
    check_seeds(strategy)
    check_fit(strategy)
    print("trained Seq2Seq")


if __name__ == "__main__":
    main()

"""Updates on two replicas equal updates on one device.

A program of its own, because devices must be set up first. It prints the largest difference
between the weights after two updates.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from seq2seq_memattn.training.measurements import UpdateResult
from tests.tolerances import as_array
from tests.training.runs import TRAINING
from tests.training.updates.test_tensorflow_update import batch, make

CONFIG = dataclasses.replace(TRAINING, clip_norm=0.05, embedding_clip_norm=0.01)


def updated(strategy: tf.distribute.Strategy) -> tuple[list[UpdateResult], list[Any]]:
    """The results and the weights of two updates."""
    model, optimizer, updater = make(config=CONFIG, strategy=strategy)
    # One replica gets two sentences, the other gets one: their numbers of tokens differ.
    results = [updater(batch()) for _ in range(2)]
    return results, [*model.get_weights(), *(as_array(v) for v in optimizer.variables)]


def main() -> None:
    cpus = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    mirrored = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    two, weights = updated(mirrored)
    one, expected = updated(tf.distribute.OneDeviceStrategy("/cpu:0"))
    for ours, theirs in zip(two, one, strict=True):
        np.testing.assert_allclose(ours[:3], theirs[:3], rtol=1e-5)
        assert ours.terms == {"cross_entropy": ours.loss}
        assert ours.is_applied
    print(max(np.abs(a - b).max() for a, b in zip(weights, expected, strict=True)))


if __name__ == "__main__":
    main()

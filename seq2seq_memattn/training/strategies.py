"""Devices: where the replicas of a training run live."""

import tensorflow as tf


def make_strategy() -> tf.distribute.Strategy:
    """One replica, on the first GPU if there is one, else on the CPU."""
    device = "/gpu:0" if tf.config.list_physical_devices("GPU") else "/cpu:0"
    return tf.distribute.OneDeviceStrategy(device)

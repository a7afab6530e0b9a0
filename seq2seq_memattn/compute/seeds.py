"""Dropout seeds that differ between the replicas of a training; states of random generators."""

from typing import Any

import keras
from keras import ops

APART = 1_000_003  # distance between the seeds of two replicas


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class SeedGenerator(keras.random.SeedGenerator):
    """Keras's seed generator, but with different seeds on each replica.

    The state of Keras's generator is the same on all replicas. With equal seeds, replicas would
    draw the same masks for different sentences.
    """

    def next(self, ordered: bool = True) -> Any:
        seed = super().next(ordered)
        replica = _replica()
        if replica is None:
            return seed
        shift = ops.stack([ops.cast(replica * APART, seed.dtype), ops.zeros((), seed.dtype)])
        return seed + shift


def seed_states(layer: Any) -> list[Any]:
    """The states of all random generators inside a layer, such as those of its `Dropout` layers."""
    weights = {id(weight) for weight in layer.weights}
    return [variable for variable in layer.variables if id(variable) not in weights]


def _replica() -> Any:
    """The index of this replica, a scalar array; None if it is the only one, or on JAX."""
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return None
    return context.replica_id_in_sync_group

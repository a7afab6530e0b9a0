"""Random numbers for dropout, others on each replica of a training."""

from typing import Any

import keras
from keras import ops

APART = 1_000_003  # between the seeds of two replicas


class SeedGenerator(keras.random.SeedGenerator):
    """Keras's, whose state is the same on all replicas, with seeds that are not.

    Replicas would draw the same masks for different sentences otherwise.
    """

    def next(self, ordered: bool = True) -> Any:
        seed = super().next(ordered)
        replica = _replica()
        if replica is None:
            return seed
        shift = ops.stack([ops.cast(replica * APART, seed.dtype), ops.zeros((), seed.dtype)])
        return seed + shift


def _replica() -> Any:
    """The number of the replica, an array; None where there are not several."""
    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return None
    return context.replica_id_in_sync_group

"""The optimiser of a training run."""

import keras

from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.model import Seq2Seq


def make_optimizer(model: Seq2Seq, config: TrainingConfig) -> keras.optimizers.Optimizer:
    """Adam as google/seq2seq uses it, with its variables made."""
    optimizer = keras.optimizers.Adam(config.learning_rate, epsilon=config.adam_epsilon)
    optimizer.build(model.trainable_variables)
    return optimizer

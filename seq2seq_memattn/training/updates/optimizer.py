"""The optimiser of a training run."""

import keras

from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.model import Seq2Seq


def make_optimizer(model: Seq2Seq, config: TrainingConfig) -> keras.optimizers.Optimizer:
    """The optimiser of a configuration, such as google/seq2seq's Adam, with its variables made."""
    if config.optimizer == "sgd":
        optimizer = keras.optimizers.SGD(config.learning_rate)
    else:
        optimizer = keras.optimizers.Adam(config.learning_rate, epsilon=config.adam_epsilon)
    optimizer.build(model.trainable_variables)
    return optimizer

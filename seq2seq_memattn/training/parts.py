"""What a run trains with, on each backend: the model, its optimiser, what takes an update."""

from collections.abc import Callable
from typing import Any

import keras

from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.precision import dtype_policy
from seq2seq_memattn.training.optimizer import make_optimizer
from seq2seq_memattn.training.update_result import UpdateResult

Parts = tuple[Seq2Seq, Any, Callable[[Any], UpdateResult]]


def make_parts(model_config: ModelConfig, config: TrainingConfig) -> Parts:
    """Model, optimiser and updater on Keras's backend."""
    on_tensorflow = keras.backend.backend() == "tensorflow"
    return (_tensorflow_parts if on_tensorflow else _jax_parts)(model_config, config)


def _tensorflow_parts(model_config: ModelConfig, config: TrainingConfig) -> Parts:
    """Model, optimiser and updater on the devices of a strategy."""
    from seq2seq_memattn.training.strategies import make_strategy
    from seq2seq_memattn.training.update import Updater

    strategy = make_strategy()
    with strategy.scope():
        model = Seq2Seq(model_config, dtype=dtype_policy(config.precision))
        optimizer = make_optimizer(model, config)
    return model, optimizer, Updater(strategy, model, optimizer, config)


def _jax_parts(model_config: ModelConfig, config: TrainingConfig) -> Parts:
    """Model, optimiser and updater on JAX's first device."""
    from seq2seq_memattn.training.jax_update import JaxUpdater

    model = Seq2Seq(model_config, dtype=dtype_policy(config.precision))
    optimizer = make_optimizer(model, config)
    return model, optimizer, JaxUpdater(model, optimizer, config)

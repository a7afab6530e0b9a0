"""Makes the parts of a training on each backend: model, optimiser and updater."""

import os
from typing import Any

import keras

from seq2seq_memattn.compute.precision import dtype_policy
from seq2seq_memattn.config import DevicesConfig, ModelConfig, TrainingConfig
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.training.distributed.cluster import find_cluster
from seq2seq_memattn.training.distributed.workers import ALONE, Devices

Parts = tuple[Seq2Seq, Any, Any]


def find_devices(config: DevicesConfig) -> Devices:
    """Finds the devices for Keras's backend; call it before the backend computes anything.

    Raises:
        ValueError: if the options do not fit the machine, or ask for more than one device on JAX.
        LostWorker, SystemExit: see `strategies.make_devices`.
    """
    if keras.backend.backend() == "tensorflow":
        from seq2seq_memattn.training.distributed.strategies import make_devices

        return make_devices(config)
    cluster = find_cluster(config, os.environ)
    is_one = config.strategy in ("auto", "one_device") and config.num_devices <= 1
    if not is_one or (cluster is not None and cluster.size > 1):
        raise ValueError("JAX trains on one device: expected --strategy=one_device and no cluster")
    return Devices(None, ALONE)


def make_parts(model_config: ModelConfig, config: TrainingConfig, strategy: Any = None) -> Parts:
    """Makes model, optimiser and updater (see `TensorFlowUpdater`) on Keras's backend.

    Args:
        model_config, config: the options.
        strategy: strategy of `find_devices`; None: one device.
    """
    if keras.backend.backend() == "tensorflow":
        return _tensorflow_parts(model_config, config, strategy)
    from seq2seq_memattn.training.updates.jax_update import JaxUpdater

    model = Seq2Seq(model_config, dtype=dtype_policy(config.precision))
    optimizer = make_optimizer(model, config)
    return model, optimizer, JaxUpdater(model, optimizer, config)


def make_optimizer(model: Seq2Seq, config: TrainingConfig) -> keras.optimizers.Optimizer:
    """Makes the optimiser of a configuration, such as google/seq2seq's Adam, and builds it."""
    if config.optimizer == "sgd":
        optimizer = keras.optimizers.SGD(config.learning_rate)
    else:
        optimizer = keras.optimizers.Adam(config.learning_rate, epsilon=config.adam_epsilon)
    optimizer.build(model.trainable_variables)
    return optimizer


def _tensorflow_parts(model_config: ModelConfig, config: TrainingConfig, strategy: Any) -> Parts:
    from seq2seq_memattn.training.distributed.strategies import is_asynchronous, one_device
    from seq2seq_memattn.training.updates.parameter_server import AsynchronousUpdater
    from seq2seq_memattn.training.updates.tensorflow_update import TensorFlowUpdater

    strategy = strategy or one_device()
    with strategy.scope():
        model = Seq2Seq(model_config, dtype=dtype_policy(config.precision))
        optimizer = make_optimizer(model, config)
    kind = AsynchronousUpdater if is_asynchronous(strategy) else TensorFlowUpdater
    return model, optimizer, kind(strategy, model, optimizer, config)


def local_model(model: Seq2Seq, strategy: Any) -> Seq2Seq:
    """The model itself, or a new local model if parameter servers hold the model's weights."""
    if strategy is None or keras.backend.backend() != "tensorflow":
        return model
    from seq2seq_memattn.training.distributed.strategies import is_asynchronous

    if not is_asynchronous(strategy):
        return model
    return Seq2Seq(model.config, dtype=model.dtype_policy)

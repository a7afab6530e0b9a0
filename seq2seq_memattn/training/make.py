"""Builds a training run's model, optimiser and updater on the current backend."""

import os
from pathlib import Path
from typing import Any

import keras

from seq2seq_memattn.compute.precision import dtype_policy
from seq2seq_memattn.config import DevicesConfig, ModelConfig, TrainingConfig
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.runs.directory import load_run
from seq2seq_memattn.training.distributed.cluster import find_cluster
from seq2seq_memattn.training.distributed.workers import ALONE, Devices
from seq2seq_memattn.training.updates.guidance import Teacher
from seq2seq_memattn.training.updates.training_loss import reading_asked

Parts = tuple[Seq2Seq, Any, Any]
# Attentions that learn no distribution over the source positions.
NOTHING_TO_LEARN = ("none", "constant", "linear")


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
        model_config, config: options of the model and of training.
        strategy: the `strategy` that `find_devices` returned; None: train on one device.
    """
    if keras.backend.backend() == "tensorflow":
        return _tensorflow_parts(model_config, config, strategy)
    from seq2seq_memattn.training.updates.jax_update import JaxUpdater

    model = Seq2Seq(model_config, dtype=dtype_policy(config.precision))
    optimizer = make_optimizer(model, config)
    teacher = make_teacher(model, config)
    return model, optimizer, JaxUpdater(model, optimizer, config, teacher)


def make_optimizer(model: Seq2Seq, config: TrainingConfig) -> keras.optimizers.Optimizer:
    """Makes and builds a configuration's optimiser, for example Adam as in google/seq2seq."""
    if config.optimizer == "sgd":
        optimizer = keras.optimizers.SGD(config.learning_rate)
    else:
        optimizer = keras.optimizers.Adam(config.learning_rate, epsilon=config.adam_epsilon)
    optimizer.build(model.trainable_variables)
    return optimizer


def make_teacher(student: Seq2Seq, config: TrainingConfig) -> Teacher | None:
    """Loads the teacher that a configuration names; None if it names none.

    Raises:
        ValueError: if the directory is not a run or has no weights, the attention of either model
            learns no distribution over the source, or contexts are to be compared but differ in
            width.
    """
    if not config.teacher:
        return None
    run = load_run(Path(config.teacher), precision=config.precision)
    asked = reading_asked(config)
    if run.model.config.attention in NOTHING_TO_LEARN:
        raise ValueError(f"{config.teacher}: expected a teacher with attention over the source")
    attention = student.config.attention
    if attention in NOTHING_TO_LEARN:
        raise ValueError(
            f"`teacher`: expected a student that learns what to read; its attention is {attention}."
        )
    widths = [model.config.context_units for model in (run.model, student)]
    if asked.contexts and widths[0] != widths[1]:
        raise ValueError(
            f"{config.teacher}: its contexts are {widths[0]} wide and those of this model "
            f"{widths[1]}; they can be compared only if they are equally wide"
        )
    return Teacher(run.model, asked, run.update, run.problems)


def _tensorflow_parts(model_config: ModelConfig, config: TrainingConfig, strategy: Any) -> Parts:
    from seq2seq_memattn.training.distributed.strategies import is_asynchronous, one_device
    from seq2seq_memattn.training.updates.parameter_server import AsynchronousUpdater
    from seq2seq_memattn.training.updates.tensorflow_update import TensorFlowUpdater

    strategy = strategy or one_device()
    with strategy.scope():
        model = Seq2Seq(model_config, dtype=dtype_policy(config.precision))
        optimizer = make_optimizer(model, config)
        teacher = make_teacher(model, config)
    kind = AsynchronousUpdater if is_asynchronous(strategy) else TensorFlowUpdater
    return model, optimizer, kind(strategy, model, optimizer, config, teacher)


def local_model(model: Seq2Seq, strategy: Any) -> Seq2Seq:
    """The model itself, or a new local model if parameter servers hold the model's weights."""
    if strategy is None or keras.backend.backend() != "tensorflow":
        return model
    from seq2seq_memattn.training.distributed.strategies import is_asynchronous

    if not is_asynchronous(strategy):
        return model
    return Seq2Seq(model.config, dtype=model.dtype_policy)

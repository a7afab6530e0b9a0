"""Asynchronous updates by several workers, of variables that parameter servers hold.

This was the default of google/seq2seq (`sync_replicas: 0`). Each worker takes its own batches and
applies each gradient as soon as it is computed. By then, other workers may have changed the
weights, so a run cannot be repeated exactly.
"""

from collections import deque
from typing import Any

import numpy as np
import tensorflow as tf

from seq2seq_memattn.compute.private import num_workers
from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.data.batching import batch_spec
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.training.measurements import UpdateResult
from seq2seq_memattn.training.updates.guidance import Teacher
from seq2seq_memattn.training.updates.mean_gradient import MeanGradient
from seq2seq_memattn.training.updates.tensorflow_update import summed_gradients
from seq2seq_memattn.training.updates.training_loss import TrainingLoss

AHEAD = 2  # batches per worker that are handed out before the first result is fetched


class AsynchronousUpdater:
    """Hands updates out to workers; like `TensorFlowUpdater`, but results come some updates later.

    Args:
        strategy: tf.distribute.ParameterServerStrategy, in whose scope model and optimiser were
            made.
        model: `Seq2Seq`.
        optimizer: a Keras optimiser, built.
        config: `TrainingConfig`; each update of one worker has `batch_size` pairs.
        teacher: `Teacher`, made in the strategy's scope, or None.

    Raises:
        ValueError: for options that asynchronous updates do not support.
    """

    def __init__(
        self,
        strategy: Any,
        model: Seq2Seq,
        optimizer: Any,
        config: TrainingConfig,
        teacher: Teacher | None = None,
    ) -> None:
        for name, value in (
            ("accumulate", config.accumulate > 1),
            ("jit_compile", config.jit_compile),
        ):
            if value:
                raise ValueError(f"--{name}: not with --strategy=parameter_server")
        if config.precision == "mixed_float16":
            raise ValueError("--precision=mixed_float16: not with --strategy=parameter_server")
        if strategy.num_replicas_in_sync > 1:  # GPUs of the workers, which would need equal parts
            raise ValueError(
                "--strategy=parameter_server: expected at most one GPU for each worker (set "
                f"CUDA_VISIBLE_DEVICES); got {strategy.num_replicas_in_sync}"
            )
        self._strategy = strategy
        self._model = model
        self._optimizer = optimizer
        self._mean = MeanGradient(model, config)
        self._loss = TrainingLoss(model, config)
        self.teacher = teacher
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self._limit = AHEAD * num_workers(strategy)
        self._pending: deque[Any] = deque()
        self._step = tf.function(self._updated, input_signature=[batch_spec()], autograph=False)

    def __call__(self, batch: dict[str, Any], loss_scale: float = 1.0) -> UpdateResult | None:
        """Hands out a batch; returns the result of an earlier one, or None at the beginning."""
        del loss_scale
        numpy = {name: np.asarray(ids) for name, ids in batch.items()}
        self._pending.append(self._coordinator.schedule(self._step, args=(numpy,)))
        return self._oldest() if len(self._pending) > self._limit else None

    def finish(self) -> list[UpdateResult]:
        """Waits for all workers and returns the remaining results, so that no update is pending."""
        self._coordinator.join()
        return [self._oldest() for _ in range(len(self._pending))]

    def _oldest(self) -> UpdateResult:
        return tf.nest.map_structure(lambda value: value.item(), self._pending.popleft().fetch())

    def _updated(self, batch: dict[str, Any]) -> UpdateResult:
        """Computes and applies one update; runs on the worker."""
        run = self._strategy.run
        figures, gradients = run(self._gradients, args=(batch,))

        def apply() -> Any:
            run(self._apply, args=(gradients,))
            return tf.constant(True)

        is_applied = tf.cond(figures.is_applied, apply, lambda: tf.constant(False))
        return figures._replace(is_applied=is_applied)

    def _gradients(self, batch: dict[str, Any]) -> tuple[UpdateResult, list[Any]]:
        taught = self.teacher(batch) if self.teacher else None
        sums = summed_gradients(self._model, self._loss, batch, taught=taught)
        figures, factor = self._mean.measure(*sums)
        return figures, self._mean.scaled(sums[-1], factor)

    def _apply(self, gradients: list[Any]) -> None:
        self._optimizer.apply(gradients, self._model.trainable_variables)

"""Updates by several workers, each at its own pace, of variables that parameter servers hold.

What google/seq2seq did by default (`sync_replicas: 0`). Every worker takes batches of its own and
applies its gradient when it has it, to weights that others have moved on meanwhile; so a run
cannot be repeated exactly.
"""

from collections import deque
from typing import Any

import numpy as np
import tensorflow as tf

from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.data.batching import batch_spec
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.training.updates.embedding_clip import EmbeddingClip
from seq2seq_memattn.training.updates.tensorflow_update import summed_gradients
from seq2seq_memattn.training.updates.training_loss import TrainingLoss
from seq2seq_memattn.training.updates.update_result import UpdateResult

AHEAD = 2  # batches for each worker that are handed out before results are looked at


class AsynchronousUpdater:
    """As `update.Updater`, with results that come some updates later.

    Args:
        strategy: tf.distribute.ParameterServerStrategy, in whose scope model and optimiser were
            made.
        model: `Seq2Seq`.
        optimizer: a Keras optimiser, built.
        config: `TrainingConfig`; `batch_size` is that of one worker's update.

    Raises:
        ValueError: for options that need all workers' gradients at once.
    """

    def __init__(
        self, strategy: Any, model: Seq2Seq, optimizer: Any, config: TrainingConfig
    ) -> None:
        for name, value in (
            ("accumulate", config.accumulate > 1),
            ("jit_compile", config.jit_compile),
        ):
            if value:
                raise ValueError(f"--{name}: not with --strategy=parameter_server")
        if config.precision == "mixed_float16":
            raise ValueError("--precision=mixed_float16: not with --strategy=parameter_server")
        self._strategy = strategy
        self._model = model
        self._optimizer = optimizer
        self._clip_norm = config.clip_norm
        self._clip_embeddings = EmbeddingClip(model, config.embedding_clip_norm)
        self._loss = TrainingLoss(model, config)
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self._limit = AHEAD * strategy.extended._num_workers
        self._pending: deque[Any] = deque()
        self._step = tf.function(self._updated, input_signature=[batch_spec()], autograph=False)

    def __call__(self, batch: dict[str, Any], loss_scale: float = 1.0) -> UpdateResult | None:
        """Hands a batch out; the result of one of earlier ones, or None where none is due yet."""
        del loss_scale
        numpy = {name: np.asarray(ids) for name, ids in batch.items()}
        self._pending.append(self._coordinator.schedule(self._step, args=(numpy,)))
        return self._oldest() if len(self._pending) > self._limit else None

    def finish(self) -> list[UpdateResult]:
        """Waits for all workers; the results that are left. The variables are whole then."""
        self._coordinator.join()
        return [self._oldest() for _ in range(len(self._pending))]

    def _oldest(self) -> UpdateResult:
        loss, num_tokens, norm, is_finite = self._pending.popleft().fetch()
        return UpdateResult(float(loss), float(num_tokens), float(norm), bool(is_finite))

    def _updated(self, batch: dict[str, Any]) -> tuple[Any, ...]:
        """One worker's update; runs there."""
        run = self._strategy.run
        loss, num_tokens, norm, gradients = run(self._gradients, args=(batch,))
        is_finite = tf.math.is_finite(loss) & tf.math.is_finite(norm)

        def apply() -> Any:
            run(self._apply, args=(gradients,))
            return tf.constant(True)

        return loss, num_tokens, norm, tf.cond(is_finite, apply, lambda: tf.constant(False))

    def _gradients(self, batch: dict[str, Any]) -> tuple[Any, Any, Any, list[Any]]:
        """Loss per token, tokens, norm per token, and gradients, clipped."""
        loss, num_tokens, gradients = summed_gradients(self._model, self._loss, batch)
        gradients = [gradient / num_tokens for gradient in gradients]
        norm = tf.linalg.global_norm(gradients)
        if self._clip_norm:
            scale = self._clip_norm / tf.maximum(norm, self._clip_norm)
            gradients = [gradient * scale for gradient in gradients]
        return loss / num_tokens, num_tokens, norm, self._clip_embeddings(gradients)

    def _apply(self, gradients: list[Any]) -> None:
        self._optimizer.apply(gradients, self._model.trainable_variables)

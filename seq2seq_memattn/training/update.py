"""One update: gradients of all replicas, summed, divided by the tokens, clipped, applied."""

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.losses import summed_cross_entropy
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.recurrence import static_shapes

IDS = tf.TensorSpec([None, None], tf.int32)


class UpdateResult(NamedTuple):
    """Figures of one update.

    Fields:
        loss: float. Nats per target token.
        num_tokens: float. Target tokens of the batch, end tokens included.
        gradient_norm: float. Before clipping.
        is_applied: bool. False if loss or gradient was NaN or infinite.
    """

    loss: float
    num_tokens: float
    gradient_norm: float
    is_applied: bool


class Updater:
    """Computes and applies updates of a model on a strategy's replicas.

    The gradient is that of the summed loss, summed over replicas, divided by the global number
    of target tokens and clipped once, globally; so it does not depend on the number of replicas.
    Gradients that are not finite are not applied.

    Args:
        strategy: tf.distribute.Strategy, in whose scope model and optimiser were made.
        model: `Seq2Seq`.
        optimizer: a Keras optimiser, built.
        config: `TrainingConfig`.
    """

    def __init__(
        self, strategy: Any, model: Seq2Seq, optimizer: Any, config: TrainingConfig
    ) -> None:
        self._strategy = strategy
        self._model = model
        self._optimizer = optimizer
        self._clip_norm = config.clip_norm
        self._jit_compile = config.jit_compile
        signature = [dict.fromkeys(("source", "target_inputs", "target_outputs"), IDS)]
        self._compute = tf.function(self._gradients, input_signature=signature, autograph=False)
        self._apply = tf.function(self._apply_gradients, autograph=False)

    def __call__(self, batch: dict[str, Any]) -> UpdateResult:
        loss, num_tokens, norm, gradients = self._strategy.run(self._compute, args=(batch,))
        loss, num_tokens, norm = float(loss), float(num_tokens), float(norm)
        is_finite = tf.math.is_finite(loss + norm).numpy()
        if is_finite:
            self._strategy.run(self._apply, args=(gradients,))
        return UpdateResult(loss, num_tokens, norm, bool(is_finite))

    def _gradients(self, batch: dict[str, Any]) -> tuple[Any, Any, Any, list[Any]]:
        if not self._jit_compile:
            return self._reduce(*self._local_gradients(batch))
        with static_shapes():
            compiled = tf.function(self._local_gradients, jit_compile=True, autograph=False)
            return self._reduce(*compiled(batch))

    def _local_gradients(self, batch: dict[str, Any]) -> tuple[Any, Any, list[Any]]:
        """Loss, tokens and gradients of one replica, all of them sums."""
        variables = self._model.trainable_variables
        with tf.GradientTape() as tape:
            loss, num_tokens = summed_cross_entropy(
                batch["target_outputs"], self._model(batch, training=True)
            )
        gradients = tape.gradient(loss, [v.value for v in variables])
        return loss, num_tokens, [tf.convert_to_tensor(g) for g in gradients]

    def _reduce(self, loss: Any, num_tokens: Any, gradients: list[Any]) -> Any:
        context = tf.distribute.get_replica_context()
        if context.num_replicas_in_sync > 1:
            loss, num_tokens, gradients = context.all_reduce(
                tf.distribute.ReduceOp.SUM, [loss, num_tokens, gradients]
            )
        gradients = [gradient / num_tokens for gradient in gradients]
        norm = tf.linalg.global_norm(gradients)
        if self._clip_norm:
            gradients, _ = tf.clip_by_global_norm(gradients, self._clip_norm, use_norm=norm)
        return loss / num_tokens, num_tokens, norm, gradients

    def _apply_gradients(self, gradients: list[Any]) -> None:
        self._optimizer.apply(gradients, self._model.trainable_variables)


def make_optimizer(model: Seq2Seq, config: TrainingConfig) -> keras.optimizers.Optimizer:
    """Adam as google/seq2seq uses it, with its variables made."""
    optimizer = keras.optimizers.Adam(config.learning_rate, epsilon=config.adam_epsilon)
    optimizer.build(model.trainable_variables)
    return optimizer

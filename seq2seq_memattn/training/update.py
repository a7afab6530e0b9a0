"""One update: gradients of all replicas, summed, divided by the tokens, clipped, applied."""

import math
from typing import Any

import tensorflow as tf

from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.training.embedding_clip import EmbeddingClip
from seq2seq_memattn.training.training_loss import TrainingLoss
from seq2seq_memattn.training.update_result import UpdateResult

IDS = tf.TensorSpec([None, None], tf.int32)


class Updater:
    """Computes and applies updates of a model on a strategy's replicas.

    The gradient is that of the summed loss, summed over replicas, divided by the global number
    of target tokens and clipped once, globally; so it does not depend on the number of replicas.
    Where the configuration says so, the gradients of embeddings are clipped once more (see
    `EmbeddingClip`). Gradients that are not finite are not applied.

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
        self._clip_embeddings = EmbeddingClip(model, config.embedding_clip_norm)
        self._loss = TrainingLoss(model, config)
        self._jit_compile = config.jit_compile
        is_alone = strategy.num_replicas_in_sync == 1
        signature = [dict.fromkeys(("source", "target_inputs", "target_outputs"), IDS)]
        # XLA needs sizes: one trace for each shape of a batch, instead of one for all.
        self._compute = tf.function(
            lambda batch: strategy.run(self._gradients, args=(batch,)),
            input_signature=signature if is_alone and not config.jit_compile else None,
            autograph=False,
            reduce_retracing=not config.jit_compile,
        )
        # Compiled, the optimiser passes over each variable once. XLA and updates across replicas
        # exclude each other.
        self._apply = tf.function(
            lambda *args: strategy.run(self._apply_gradients, args=args),
            jit_compile=is_alone,
            autograph=False,
        )
        if not is_alone:  # the norm needed the sum over replicas; Keras would sum once more
            optimizer._all_reduce_sum_gradients = lambda gradients_and_variables: (
                gradients_and_variables
            )

    def __call__(self, batch: dict[str, Any]) -> UpdateResult:
        loss, num_tokens, norm, gradients = self._compute(batch)
        loss, num_tokens, norm = (self._value(x) for x in (loss, num_tokens, norm))
        is_finite = math.isfinite(loss) and math.isfinite(norm)
        if is_finite:
            clip = min(1.0, self._clip_norm / norm) if self._clip_norm and norm else 1.0
            scale = tf.constant(clip / num_tokens, tf.float64)
            self._apply(gradients, scale)
        return UpdateResult(loss, num_tokens, norm, is_finite)

    def _value(self, x: Any) -> float:
        """A scalar that is the same on all replicas."""
        return float(self._strategy.experimental_local_results(x)[0])

    def _gradients(self, batch: dict[str, Any]) -> tuple[Any, Any, Any, list[Any]]:
        """Loss and gradient norm per token, tokens, and the gradients of the sum."""
        if self._jit_compile:
            compiled = tf.function(self._local_gradients, jit_compile=True, autograph=False)
            loss, num_tokens, gradients = compiled(batch)
        else:
            loss, num_tokens, gradients = self._local_gradients(batch)
        context = tf.distribute.get_replica_context()
        if context.num_replicas_in_sync > 1:
            loss, num_tokens, gradients = context.all_reduce(
                tf.distribute.ReduceOp.SUM, [loss, num_tokens, gradients]
            )
        norm = tf.linalg.global_norm(gradients)
        return loss / num_tokens, num_tokens, norm / num_tokens, gradients

    def _local_gradients(self, batch: dict[str, Any]) -> tuple[Any, Any, list[Any]]:
        """Loss, tokens and gradients of one replica, all of them sums."""
        variables = self._model.trainable_variables
        with tf.GradientTape() as tape:
            outputs = self._model(batch, training=True, **self._loss.call_options)
            loss, num_tokens = self._loss(batch["target_outputs"], outputs)
        # With K = 1 the softmax is constant: its weights have no gradient, which counts as 0.
        gradients = tape.gradient(
            loss, [v.value for v in variables], unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        return loss, num_tokens, [tf.convert_to_tensor(g) for g in gradients]

    def _apply_gradients(self, gradients: list[Any], scale: Any) -> None:
        """Applies `scale` times the gradients: the division by the tokens, and the global clip."""
        scaled = [gradient * tf.cast(scale, gradient.dtype) for gradient in gradients]
        self._optimizer.apply(self._clip_embeddings(scaled), self._model.trainable_variables)

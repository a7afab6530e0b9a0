"""Updates on TensorFlow: sums the gradients of all replicas, divides, clips and applies them."""

from typing import Any

import tensorflow as tf

from seq2seq_memattn.compute.private import leave_gradients_as_they_are
from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.data.batching import batch_spec, split_rows
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.training.distributed.strategies import (
    first_replica,
    local_replicas,
    this_replica,
)
from seq2seq_memattn.training.measurements import UpdateResult
from seq2seq_memattn.training.updates.guidance import Reading, Teacher
from seq2seq_memattn.training.updates.mean_gradient import MeanGradient
from seq2seq_memattn.training.updates.training_loss import Terms, TrainingLoss, total


class TensorFlowUpdater:
    """Computes and applies updates of a model on a strategy's replicas.

    The gradients of the summed loss are summed over replicas, divided by the number of target
    tokens in the whole batch and clipped to a global norm. Apart from rounding, dropout masks and
    the term of `balance_weight`, the result therefore depends neither on the number of replicas nor
    on the number of parts that each replica computes one after the other
    (`TrainingConfig.accumulate`). `MeanGradient` can also clip the gradients of embeddings.
    Gradients that are not finite are not applied.

    Args:
        strategy: tf.distribute.Strategy, in whose scope model and optimiser were made.
        model: `Seq2Seq`.
        optimizer: a Keras optimiser, built.
        config: `TrainingConfig`.
        teacher: `Teacher`, made in the strategy's scope, or None.
    """

    def __init__(
        self,
        strategy: Any,
        model: Seq2Seq,
        optimizer: Any,
        config: TrainingConfig,
        teacher: Teacher | None = None,
    ) -> None:
        self._strategy = strategy
        self._model = model
        self._optimizer = optimizer
        self._mean = MeanGradient(model, config)
        self._loss = TrainingLoss(model, config)
        self.teacher = teacher
        self._jit_compile = config.jit_compile
        self._turns = config.accumulate
        self._local_replicas = local_replicas(strategy)
        self._first_replica = first_replica(strategy)
        is_alone = strategy.num_replicas_in_sync == 1
        signature = [[batch_spec()] * self._local_replicas, tf.TensorSpec([], tf.float32)]

        def on_replicas(function: Any, of_batches: bool) -> Any:
            # XLA needs known sizes: one trace for each shape of a batch instead of one for all.
            return tf.function(
                lambda *args: strategy.run(function, args=args),
                input_signature=signature if of_batches and not config.jit_compile else None,
                autograph=False,
                reduce_retracing=not config.jit_compile,
            )

        self._compute = on_replicas(self._sums_and_totals, True)
        self._compute_turn = on_replicas(self._sums, True)
        self._add = on_replicas(lambda a, b: tf.nest.map_structure(tf.add, a, b), False)
        self._total_turns = on_replicas(self._totals, False)
        # A compiled optimiser passes over each variable once. XLA cannot compile updates across
        # replicas.
        self._apply = tf.function(
            lambda *args: strategy.run(self._apply_gradients, args=args),
            jit_compile=is_alone,
            autograph=False,
        )
        if not is_alone:  # gradients are already summed for the norm; Keras would sum them again
            leave_gradients_as_they_are(optimizer)

    def __call__(self, batch: dict[str, Any], loss_scale: float = 1.0) -> UpdateResult:
        """Computes one update, and applies it if it is finite.

        Args:
            batch: the batch of all replicas of all processes; each local replica takes its rows.
            loss_scale: the loss is multiplied by this before its gradients are computed; see
                `LossScale`.
        """
        figures, factor, gradients = self._computed(batch, loss_scale)
        result = tf.nest.map_structure(self._value, figures)
        if result.is_applied:
            self._apply(gradients, factor)
        return result

    def finish(self) -> list[UpdateResult]:
        """Returns outstanding results: none, because each update is computed at once."""
        return []

    def _computed(self, batch: dict[str, Any], loss_scale: float) -> tuple[Any, ...]:
        """The result of `_totals` for a batch, whose parts are computed in `accumulate` turns."""
        replicas = self._strategy.num_replicas_in_sync
        parts = split_rows(batch, replicas * self._turns)
        scale = tf.constant(loss_scale, tf.float32)
        turns = [
            parts[turn * replicas + self._first_replica :][: self._local_replicas]
            for turn in range(self._turns)
        ]
        if len(turns) == 1:
            return self._compute(turns[0], scale)
        sums = self._compute_turn(turns[0], scale)
        for turn in turns[1:]:
            sums = self._add(sums, self._compute_turn(turn, scale))
        return self._total_turns(sums, scale)

    def _value(self, x: Any) -> Any:
        """The Python value of a scalar that is equal on all replicas."""
        return self._strategy.experimental_local_results(x)[0].numpy().item()

    def _totals(self, sums: tuple[Any, ...], scale: Any) -> tuple[UpdateResult, Any, list[Any]]:
        """Sums over replicas; returns the results of `MeanGradient.measure` and the gradients."""
        context = tf.distribute.get_replica_context()
        if context.num_replicas_in_sync > 1:
            sums = context.all_reduce(tf.distribute.ReduceOp.SUM, list(sums))
        terms, num_tokens, gradients = sums
        figures, factor = self._mean.measure(terms, num_tokens, gradients, scale)
        return figures, factor, gradients

    def _sums_and_totals(self, parts: list[dict[str, Any]], scale: Any) -> tuple[Any, ...]:
        return self._totals(self._sums(parts, scale), scale)

    def _sums(self, parts: list[dict[str, Any]], scale: Any) -> tuple[Terms, Any, list[Any]]:
        """Sums over one replica's part: the terms of the loss, the tokens and the gradients.

        The returned gradients are multiplied by the loss scale; the returned terms are not.
        """
        part = parts[this_replica(self._strategy)]
        if self._jit_compile:
            compiled = tf.function(self._local_gradients, jit_compile=True, autograph=False)
            return compiled(part, scale)
        return self._local_gradients(part, scale)

    def _local_gradients(self, batch: dict[str, Any], scale: Any) -> tuple[Terms, Any, list[Any]]:
        taught = self.teacher(batch) if self.teacher else None
        return summed_gradients(self._model, self._loss, batch, scale, taught)

    def _apply_gradients(self, gradients: list[Any], factor: Any) -> None:
        scaled = self._mean.scaled(gradients, factor)
        self._optimizer.apply(scaled, self._model.trainable_variables)


def summed_gradients(
    model: Seq2Seq,
    training_loss: TrainingLoss,
    batch: dict[str, Any],
    scale: Any = 1.0,
    taught: Reading | None = None,
) -> tuple[Terms, Any, list[Any]]:
    """Returns the result of a `TrainingLoss`, and the gradients of the loss times `scale`.

    `taught` is what a teacher reads for the batch.
    """
    variables = model.trainable_variables
    with tf.GradientTape() as tape:
        outputs = model(batch, training=True, asked=training_loss.asked)
        terms, num_tokens = training_loss(batch["target_outputs"], outputs, taught)
        loss = total(terms)
        scaled = loss * tf.cast(scale, loss.dtype)
    # Without attention and with zeros as first states, nothing reads the encoder: gradients are 0.
    gradients = tape.gradient(
        scaled, [v.value for v in variables], unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    return terms, num_tokens, [tf.convert_to_tensor(g) for g in gradients]

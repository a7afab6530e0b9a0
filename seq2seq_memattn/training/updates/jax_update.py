"""Updates on the JAX backend: one device, no TensorFlow, the same figures as on TensorFlow."""

from typing import Any

import jax
import keras
import numpy as np
from jax import numpy as jnp

from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.data.batching import split_rows
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.training.measurements import UpdateResult
from seq2seq_memattn.training.updates.guidance import Teacher
from seq2seq_memattn.training.updates.mean_gradient import MeanGradient
from seq2seq_memattn.training.updates.training_loss import TrainingLoss, total


class JaxUpdater:
    """Computes and applies updates on JAX, like `TensorFlowUpdater`; compiles once per batch shape.

    Args:
        model: `Seq2Seq`.
        optimizer: a Keras optimiser, built.
        config: `TrainingConfig`.
        teacher: `Teacher` or None.
    """

    def __init__(
        self,
        model: Seq2Seq,
        optimizer: Any,
        config: TrainingConfig,
        teacher: Teacher | None = None,
    ) -> None:
        self._model = model
        self._optimizer = optimizer
        self._mean = MeanGradient(model, config)
        self._loss = TrainingLoss(model, config)
        self.teacher = teacher
        self._turns = config.accumulate
        self._step = jax.jit(self._updated)

    def __call__(self, batch: dict[str, Any], loss_scale: float = 1.0) -> UpdateResult:
        model = self._model
        groups = (
            model.trainable_variables,
            model.non_trainable_variables,
            self._optimizer.variables,
        )
        values = [[variable.value for variable in group] for group in groups]
        parts = split_rows(batch, self._turns)
        stacked = {name: np.stack([part[name] for part in parts]) for name in batch}
        # The teacher's weights are an argument: as constants, they would be copied into the
        # compiled function.
        teachers = self.teacher.values if self.teacher else []
        figures, updated = self._step(*values, teachers, stacked, np.float32(loss_scale))
        for group, new in zip(groups, updated, strict=True):
            for variable, value in zip(group, new, strict=True):
                variable.assign(value)
        return jax.tree.map(lambda value: value.item(), figures)

    def finish(self) -> list[UpdateResult]:
        """Returns outstanding results: none, because each update is computed at once."""
        return []

    def _updated(
        self,
        trainable: Any,
        others: Any,
        optimizer: Any,
        teachers: Any,
        parts: Any,
        loss_scale: Any,
    ) -> Any:
        """Returns the figures of an update, and the variables after it."""

        def scaled_loss(trainable: Any, others: Any, batch: Any) -> Any:
            taught = self.teacher(batch, teachers) if self.teacher else None
            outputs, after = self._model.stateless_call(
                trainable, others, batch, training=True, asked=self._loss.asked
            )
            terms, num_tokens = self._loss(batch["target_outputs"], outputs, taught)
            loss = total(terms)
            return loss * loss_scale.astype(loss.dtype), (terms, num_tokens, after)

        def sums_of(others: Any, batch: Any) -> Any:
            (_, (terms, num_tokens, after)), gradients = jax.value_and_grad(
                scaled_loss, has_aux=True
            )(trainable, others, batch)
            return (terms, num_tokens, gradients), after

        def turn(carry: Any, batch: Any) -> Any:
            sums, others = carry
            more, after = sums_of(others, batch)
            return (jax.tree.map(jnp.add, sums, more), after), None

        carry = sums_of(others, {name: ids[0] for name, ids in parts.items()})
        if self._turns > 1:
            carry, _ = jax.lax.scan(turn, carry, {name: ids[1:] for name, ids in parts.items()})
        (terms, num_tokens, gradients), after = carry
        figures, factor = self._mean.measure(terms, num_tokens, gradients, loss_scale)
        gradients = self._mean.scaled(gradients, factor)
        moved, state = self._optimizer.stateless_apply(optimizer, gradients, trainable)
        old, new = (trainable, optimizer), (moved, state)
        kept = keras.tree.map_structure(lambda a, b: jnp.where(figures.is_applied, b, a), old, new)
        return figures, (kept[0], after, kept[1])

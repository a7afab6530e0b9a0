"""Turns sums over a batch into the gradient for the optimiser: divides, checks and clips."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.training.measurements import UpdateResult
from seq2seq_memattn.training.updates.training_loss import Terms, total


class MeanGradient:
    """The gradient of the mean loss per target token, clipped to a global norm.

    If the configuration has a norm for embeddings, the gradient of each embedding matrix is then
    clipped to that norm.

    Source: google/seq2seq, `models/seq2seq_model.py`, where the norm of embeddings is 0.1.
    google/seq2seq takes this norm over the slices of a sparse gradient, one slice for each token of
    a batch. Here, slices of the same token are summed first.

    Args:
        model: `Seq2Seq`. Gradients are in the order of its trainable variables.
        config: `TrainingConfig`.
    """

    def __init__(self, model: Seq2Seq, config: TrainingConfig) -> None:
        embeddings = [model.source_embedding, model.target_embedding]
        paths = {layer.embeddings.path for layer in embeddings}
        self._clip_norm = config.clip_norm
        self._embedding_norm = config.embedding_clip_norm
        self._is_embedding = [variable.path in paths for variable in model.trainable_variables]

    def measure(
        self, terms: Terms, num_tokens: Any, gradients: Sequence[Any], loss_scale: Any = 1.0
    ) -> tuple[UpdateResult, Any]:
        """Returns the figures of an update, and the factor for its gradients.

        Args:
            terms, num_tokens: sums over a batch; see `TrainingLoss`.
            gradients: gradients of the summed loss times `loss_scale`.
            loss_scale: the loss scale.

        Returns:
            `UpdateResult` of tensors; `is_applied` says whether loss and norm are finite.
            The factor by which `scaled` multiplies gradients: it divides by tokens and loss scale,
                and applies the global clip.
        """
        norm = _global_norm(gradients) / ops.cast(loss_scale, gradients[0].dtype) / num_tokens
        terms = {name: term / num_tokens for name, term in terms.items()}
        loss = total(terms)
        is_finite = ops.logical_and(ops.isfinite(loss), ops.isfinite(norm))
        # In float64, the factor is rounded only once, at the end. JAX has no float64 by default.
        wide = "float64" if keras.backend.backend() == "tensorflow" else norm.dtype
        wide_norm, tokens, scale = (ops.cast(x, wide) for x in (norm, num_tokens, loss_scale))
        clip = self._clip_norm / ops.maximum(wide_norm, self._clip_norm) if self._clip_norm else 1.0
        return UpdateResult(loss, num_tokens, norm, is_finite, terms), clip / tokens / scale

    def scaled(self, gradients: Sequence[Any], factor: Any) -> list[Any]:
        """Returns the gradients times `factor`; clips those of embeddings to their maximum norm."""
        scaled = [gradient * ops.cast(factor, gradient.dtype) for gradient in gradients]
        if not self._embedding_norm:
            return scaled
        return [
            self._clipped(gradient) if is_embedding else gradient
            for gradient, is_embedding in zip(scaled, self._is_embedding, strict=True)
        ]

    def _clipped(self, gradient: Any) -> Any:
        norm = ops.sqrt(ops.sum(ops.square(gradient)))
        return gradient * (self._embedding_norm / ops.maximum(norm, self._embedding_norm))


def _global_norm(gradients: Sequence[Any]) -> Any:
    squares = ops.stack([ops.sum(ops.square(gradient)) for gradient in gradients])
    return ops.sqrt(ops.sum(squares))

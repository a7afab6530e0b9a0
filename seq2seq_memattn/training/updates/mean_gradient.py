"""From sums over a batch to the gradient that an optimiser takes: divided, checked, clipped."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.training.measurements import UpdateResult


class MeanGradient:
    """The gradient of the mean over target tokens, scaled down to a global norm.

    Where the configuration says so, the gradient of each embedding is then scaled down once more,
    to a norm of its own.

    Source: google/seq2seq, `models/seq2seq_model.py`, where the norm of embeddings is 0.1. There it
    is that of the gradient's slices, one for each token of a batch; here those of a token are
    summed first.

    Args:
        model: `Seq2Seq`, in the order of whose trainable variables gradients are.
        config: `TrainingConfig`.
    """

    def __init__(self, model: Seq2Seq, config: TrainingConfig) -> None:
        embeddings = [model.source_embedding, model.target_embedding]
        paths = {layer.embeddings.path for layer in embeddings}
        self._clip_norm = config.clip_norm
        self._embedding_norm = config.embedding_clip_norm
        self._is_embedding = [variable.path in paths for variable in model.trainable_variables]

    def measure(
        self, loss: Any, num_tokens: Any, gradients: Sequence[Any], loss_scale: Any = 1.0
    ) -> tuple[UpdateResult, Any]:
        """Figures of an update, and what its gradients must be multiplied by.

        Args:
            loss, num_tokens: sums over a batch.
            gradients: of `loss_scale` times the sum.
            loss_scale: how many times as large the loss was that was differentiated.

        Returns:
            `UpdateResult` of tensors; `is_applied` says whether the update may be.
            A factor for `scaled`: the division by the tokens, and the clip.
        """
        norm = _global_norm(gradients) / ops.cast(loss_scale, gradients[0].dtype) / num_tokens
        loss = loss / num_tokens
        is_finite = ops.logical_and(ops.isfinite(loss), ops.isfinite(norm))
        # JAX has no float64; TensorFlow rounds the factor once, at the end.
        wide = "float64" if keras.backend.backend() == "tensorflow" else "float32"
        wide_norm, tokens, scale = (ops.cast(x, wide) for x in (norm, num_tokens, loss_scale))
        clip = self._clip_norm / ops.maximum(wide_norm, self._clip_norm) if self._clip_norm else 1.0
        return UpdateResult(loss, num_tokens, norm, is_finite), clip / tokens / scale

    def scaled(self, gradients: Sequence[Any], factor: Any) -> list[Any]:
        """The gradients, each times `factor`; those of embeddings are clipped once more."""
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

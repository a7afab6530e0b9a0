"""google/seq2seq's second clip, of each embedding's gradient alone, after the global one."""

from collections.abc import Sequence
from typing import Any

from keras import ops

from seq2seq_memattn.model import Seq2Seq


class EmbeddingClip:
    """Scales the gradients of embeddings down to a norm; leaves all others.

    Source: google/seq2seq, `models/seq2seq_model.py`, where the norm is 0.1. There it is that of
    the gradient's slices, one for each token of a batch; here those of a token are summed first.

    Args:
        model: `Seq2Seq`.
        norm: float >= 0. 0: nothing is scaled.
    """

    def __init__(self, model: Seq2Seq, norm: float) -> None:
        embeddings = [model.source_embedding, model.target_embedding]
        paths = {layer.embeddings.path for layer in embeddings}
        self._norm = norm
        self._is_embedding = [variable.path in paths for variable in model.trainable_variables]

    def __call__(self, gradients: Sequence[Any]) -> list[Any]:
        """Gradients in the order of the model's trainable variables, and as many."""
        if not self._norm:
            return list(gradients)
        return [
            self._scaled(gradient) if is_embedding else gradient
            for gradient, is_embedding in zip(gradients, self._is_embedding, strict=True)
        ]

    def _scaled(self, gradient: Any) -> Any:
        norm = ops.sqrt(ops.sum(ops.square(gradient)))
        return gradient * (self._norm / ops.maximum(norm, self._norm))

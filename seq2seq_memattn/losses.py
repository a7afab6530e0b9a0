"""The training loss: cross entropy per target token."""

from typing import Any

import keras
from keras import ops

from seq2seq_memattn.vocabulary import PAD_ID


def summed_cross_entropy(
    targets: Any, logits: Any, label_smoothing: float = 0.0
) -> tuple[Any, Any]:
    """Cross entropy summed over real tokens, and their number.

    Source of label smoothing: Szegedy et al. (2016), section 7: against the distribution that has
    1 - label_smoothing at the target and spreads label_smoothing evenly over the vocabulary.

    Args:
        targets: int32 [batch, target_length]; padding is left out.
        logits: float [batch, target_length, vocab].
        label_smoothing: float in [0, 1).

    Returns:
        loss: float scalar, in nats.
        num_tokens: scalar of the same dtype.
    """
    if label_smoothing:
        losses = keras.losses.categorical_crossentropy(
            ops.one_hot(targets, logits.shape[-1], dtype=logits.dtype),
            logits,
            from_logits=True,
            label_smoothing=label_smoothing,
        )
    else:
        losses = keras.losses.sparse_categorical_crossentropy(targets, logits, from_logits=True)
    real = ops.cast(ops.not_equal(targets, PAD_ID), losses.dtype)
    return ops.sum(losses * real), ops.sum(real)


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class TokenCrossEntropy(keras.losses.Loss):
    """Mean cross entropy in nats per target token of the batch, for `model.compile`.

    Source: google/seq2seq, `losses.py` and `models/seq2seq_model.py`: the sum over real tokens,
    end tokens included, divided by their number.

    Args:
        label_smoothing: float in [0, 1). See `summed_cross_entropy`.

    Raises:
        ValueError: if `label_smoothing` is out of its range.
    """

    def __init__(
        self, label_smoothing: float = 0.0, name: str = "token_cross_entropy", **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        if not 0.0 <= label_smoothing < 1.0:
            raise ValueError(f"`label_smoothing` must be in [0, 1); got {label_smoothing}.")
        self.label_smoothing = label_smoothing

    def call(self, y_true: Any, y_pred: Any) -> Any:
        loss, num_tokens = summed_cross_entropy(
            ops.cast(y_true, "int32"), y_pred, self.label_smoothing
        )
        # [1]: what Keras reduces, it also averages over replicas; a scalar it would add up.
        return ops.reshape(loss / ops.maximum(num_tokens, 1.0), (1,))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "label_smoothing": self.label_smoothing}

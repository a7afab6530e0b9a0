"""The training loss: cross entropy per target token."""

from typing import Any

import keras
from keras import ops

from seq2seq_memattn.vocabulary import PAD_ID


def summed_cross_entropy(targets: Any, logits: Any) -> tuple[Any, Any]:
    """Cross entropy summed over real tokens, and their number.

    Args:
        targets: int32 [batch, target_length]; padding is left out.
        logits: float [batch, target_length, vocab].

    Returns:
        loss: float scalar, in nats.
        num_tokens: scalar of the same dtype.
    """
    losses = keras.losses.sparse_categorical_crossentropy(targets, logits, from_logits=True)
    real = ops.cast(ops.not_equal(targets, PAD_ID), losses.dtype)
    return ops.sum(losses * real), ops.sum(real)


@keras.saving.register_keras_serializable(package="seq2seq_memattn")
class TokenCrossEntropy(keras.losses.Loss):
    """Mean cross entropy in nats per target token of the batch, for `model.compile`.

    Source: google/seq2seq, `losses.py` and `models/seq2seq_model.py`: the sum over real tokens,
    end tokens included, divided by their number.
    """

    def __init__(self, name: str = "token_cross_entropy", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        loss, num_tokens = summed_cross_entropy(ops.cast(y_true, "int32"), y_pred)
        # [1]: what Keras reduces, it also averages over replicas; a scalar it would add up.
        return ops.reshape(loss / ops.maximum(num_tokens, 1.0), (1,))

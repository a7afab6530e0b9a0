"""The loss that training minimises."""

from typing import Any

from keras import ops

from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.losses import summed_cross_entropy
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.vocabulary import PAD_ID


class TrainingLoss:
    """Cross entropy, plus an optional reward for narrow windows of flexible attention.

    Source: Shu and Nakayama (2017), equation 9: the cross entropy of each sentence minus beta times
    the mean strength of its steps' penalties.
    Symbols: beta -> config.strength_weight, g(t) -> strengths, T -> a target's length with its end
    token.

    Args:
        model: `Seq2Seq`.
        config: `TrainingConfig`.

    Attributes:
        call_options: keyword arguments for calling the model.

    Raises:
        ValueError: if `strength_weight` is not 0 and the attention is not flexible.
    """

    def __init__(self, model: Seq2Seq, config: TrainingConfig) -> None:
        self._label_smoothing = config.label_smoothing
        self._strength_weight = config.strength_weight
        attention = model.config.attention
        if config.strength_weight and attention != "flexible":
            raise ValueError(
                "`strength_weight` is for flexible attention, whose penalty has a strength; got "
                f"{config.strength_weight} with {attention}."
            )
        self.call_options = {"return_strengths": True} if config.strength_weight else {}

    def __call__(self, targets: Any, outputs: Any) -> tuple[Any, Any]:
        """Returns the summed loss and the number of real tokens.

        Args:
            targets: int32 [batch, target_length].
            outputs: the model's outputs.
        """
        if not self.call_options:
            return summed_cross_entropy(targets, outputs, self._label_smoothing)
        logits, strengths = outputs
        loss, num_tokens = summed_cross_entropy(targets, logits, self._label_smoothing)
        lengths = ops.sum(ops.cast(ops.not_equal(targets, PAD_ID), strengths.dtype), axis=1)
        # A row without a target only fills a batch; its one step must not count.
        sums = ops.where(lengths > 0, ops.sum(strengths, axis=1), 0.0)
        means = sums / ops.maximum(lengths, 1.0)
        return loss - self._strength_weight * ops.cast(ops.sum(means), loss.dtype), num_tokens

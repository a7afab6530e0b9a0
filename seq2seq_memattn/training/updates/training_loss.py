"""The loss that training minimises."""

import math
from typing import Any

from keras import ops

from seq2seq_memattn.attention.registry import num_slots
from seq2seq_memattn.compute.precision import at_least_float32
from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.layers.teacher_forcing import Asked
from seq2seq_memattn.losses import summed_cross_entropy
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.training.updates.guidance import (
    LEAST,
    alignment_divergences,
    context_distances,
)
from seq2seq_memattn.vocabulary import PAD_ID

Terms = dict[str, Any]  # scalars by name


class TrainingLoss:
    """Cross entropy, and the terms that a configuration adds to it.

    Each term is summed over real target tokens, except for the reward, which is summed over
    sentences. The terms that can be added are:

    * a reward for narrow windows of flexible attention. Source: Shu and Nakayama (2017), equation
      9: the cross entropy of each sentence minus beta times the mean strength of its steps'
      penalties. Symbols: beta -> config.strength_weight, g(t) -> strengths, T -> a target's length
      with its end token;
    * `balance_weight` times the `unevenness` of the slots' use. The unevenness is one number for
      all sentences that a device computes at a time, and is added once for each of their tokens. It
      therefore depends on the number of replicas and on the number of parts of a batch;
    * the differences from what a teacher reads: `context_weight` times `context_distances` and
      `alignment_weight` times `alignment_divergences`.

    Args:
        model: `Seq2Seq`.
        config: `TrainingConfig`.

    Attributes:
        asked: `Asked`, what the loss needs from the model besides the logits; None if nothing.

    Raises:
        ValueError: if `strength_weight` is not 0 and the attention is not flexible, or
            `balance_weight` is not 0 and the attention is not K-memory.
    """

    def __init__(self, model: Seq2Seq, config: TrainingConfig) -> None:
        self._config = config
        attention = model.config.attention
        if config.strength_weight and attention != "flexible":
            raise ValueError(
                "`strength_weight` is for flexible attention, whose penalty has a strength; got "
                f"{config.strength_weight} with {attention}."
            )
        if config.balance_weight and not num_slots(attention):
            raise ValueError(
                "`balance_weight` is for k_memory, which has slots; got "
                f"{config.balance_weight} with {attention}."
            )
        reading = reading_asked(config)._replace(scores=config.balance_weight > 0)
        self.asked = reading if config.strength_weight or any(reading) else None

    def __call__(self, targets: Any, outputs: Any, taught: Any = None) -> tuple[Terms, Any]:
        """Returns the terms of the loss, each a sum over the batch, and the number of tokens.

        The loss is the sum of the terms, which include their weights. A reward is a negative term.

        Args:
            targets: int32 [batch, target_length].
            outputs: the model's outputs.
            taught: `Reading` of the teacher, or None if there is no teacher.
        """
        config = self._config
        decoded: Any
        logits, decoded = (outputs, None) if self.asked is None else outputs
        entropy, num_tokens = summed_cross_entropy(targets, logits, config.label_smoothing)
        terms = {"cross_entropy": entropy}
        real = ops.not_equal(targets, PAD_ID)
        if config.strength_weight:
            reward = config.strength_weight * _summed_strengths(decoded.strengths, real)
            terms["strength"] = -ops.cast(reward, entropy.dtype)
        if config.balance_weight:
            uneven = ops.cast(unevenness(decoded.scores, real), entropy.dtype)
            tokens = ops.cast(num_tokens, entropy.dtype)
            terms["balance"] = config.balance_weight * uneven * tokens
        for weight, differences, name in (
            (config.context_weight, context_distances, "contexts"),
            (config.alignment_weight, alignment_divergences, "alignments"),
        ):
            if weight and taught is not None:
                each = differences(getattr(taught, name), getattr(decoded, name))
                difference = ops.sum(ops.where(real, each, 0.0))
                terms[name] = ops.cast(weight * difference, entropy.dtype)
        return terms, num_tokens


def total(terms: Terms) -> Any:
    """The loss: the sum of its terms."""
    return sum(terms.values())


def reading_asked(config: TrainingConfig) -> Asked:
    """What the loss compares with a teacher's reading."""
    return Asked(alignments=config.alignment_weight > 0, contexts=config.context_weight > 0)


def unevenness(scores: Any, real: Any) -> Any:
    """Divergence of an even use of the slots from their mean use, in nats; 0 if all are used alike.

    Taken in this direction, the divergence has a gradient that revives slots that are hardly read,
    if their mean use is above `LEAST`. Shazeer et al. (2017), section 4, use a term with the same
    purpose for mixtures of experts.

    Args:
        scores: float [batch, target_length, slots]. The scores of a step are divided by their sum.
        real: bool [batch, target_length].
    """
    scores = at_least_float32(scores)
    shares = scores / ops.maximum(ops.sum(scores, axis=-1, keepdims=True), LEAST)
    use = ops.sum(ops.where(real[:, :, None], shares, 0.0), axis=(0, 1))
    use = use / ops.maximum(ops.sum(use), LEAST)
    return -ops.mean(ops.log(ops.maximum(use, LEAST))) - math.log(scores.shape[-1])


def _summed_strengths(strengths: Any, real: Any) -> Any:
    """The sum over sentences of the mean strength of their steps."""
    strengths = at_least_float32(strengths)
    lengths = ops.sum(ops.cast(real, strengths.dtype), axis=1)
    # A row without a target only fills a batch; its one step must not count.
    sums = ops.where(lengths > 0, ops.sum(strengths, axis=1), 0.0)
    return ops.sum(sums / ops.maximum(lengths, 1.0))

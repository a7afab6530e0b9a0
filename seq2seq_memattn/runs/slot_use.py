"""How a model with K-memory uses its slots."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from seq2seq_memattn.compute.backend import compiled
from seq2seq_memattn.data.batching import make_batch
from seq2seq_memattn.layers.teacher_forcing import Asked


def slot_use(scores: Sequence[Any]) -> dict[str, float]:
    """How evenly the slots of a memory are read.

    A perplexity is the number of slots that an even distribution of the same entropy would have:
    from 1, if only one slot is read, to the number of slots, if all are read alike.

    Args:
        scores: for each target, the decoder's scores, float [steps, num_slots]. The scores of a
            step are divided by their sum, because sigmoids do not sum to 1. The quotients are the
            slots' shares of the step.

    Returns:
        slots: number of slots.
        dead: number of slots whose mean share is less than a tenth of an even share.
        corpus: perplexity of the shares averaged over all steps.
        sentence: perplexity of the shares averaged over the steps of one target; the geometric mean
            of these perplexities over targets, weighted by their numbers of steps.
        step: perplexity of the shares of one step; the geometric mean over all steps.

    Raises:
        ValueError: if there are no steps.
    """
    steps = [np.asarray(each, np.float64) for each in scores if len(each)]
    if not steps:
        raise ValueError("`scores`: expected the scores of at least one step; got none.")
    shares = [each / np.maximum(each.sum(axis=1, keepdims=True), 1e-30) for each in steps]
    every = np.concatenate(shares)
    mean = every.mean(axis=0)
    of_targets = [_entropy(each.mean(axis=0)) for each in shares]
    return {
        "slots": len(mean),
        "dead": int((mean < 0.1 / len(mean)).sum()),
        "corpus": float(np.exp(_entropy(mean))),
        "sentence": float(np.exp(np.average(of_targets, weights=[len(each) for each in shares]))),
        "step": float(np.exp(np.mean([_entropy(step) for step in every]))),
    }


class ReferenceScores:
    """The decoder's scores over the slots at each step of given targets.

    Args:
        model: `Seq2Seq` with K-memory. Each call uses its current weights.
        sources, targets: as many sources as targets, each an int32 array [length] without start and
            end tokens. All pairs form one batch.
    """

    def __init__(self, model: Any, sources: Sequence[Any], targets: Sequence[Any]) -> None:
        self._lengths = [len(target) + 1 for target in targets]
        self._batch = make_batch(sources, targets)
        self._call = compiled(model, lambda batch: model(batch, asked=Asked(scores=True))[1].scores)

    def __call__(self) -> list[Any]:
        """Returns float [steps, slots] for each target; its end token is a step too."""
        found = np.asarray(self._call(self._batch))
        return [scores[:length] for scores, length in zip(found, self._lengths, strict=True)]


def _entropy(shares: Any) -> float:
    """The entropy of a distribution, in nats."""
    read = shares[shares != 0]  # keeps NaN, which must not look like a slot that is never read
    return float(-(read * np.log(read)).sum())

"""Log-probabilities of given targets, under teacher forcing."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from keras import ops

from seq2seq_memattn.compute.backend import WIDTH_STEP, compiled, has_static_shapes
from seq2seq_memattn.data.batching import Batch, make_batch, round_up
from seq2seq_memattn.losses import token_cross_entropy

Ids = npt.NDArray[np.int32]

MAX_LOGITS = 1 << 27  # limit per batch, half a GiB: long targets get smaller batches


class PairScorer:
    """Computes the log-probabilities of targets, with one compiled function for all batches.

    Args:
        model: `Seq2Seq`. Each call uses its current weights.
    """

    def __init__(self, model: Any) -> None:
        self._score = compiled(model, functools.partial(target_log_probs, model))
        self._max_tokens = MAX_LOGITS // model.config.target_vocab_size

    def __call__(
        self,
        sources: Sequence[Ids],
        targets: Sequence[Ids],
        batch_size: int,
        on_batch: Callable[[int], None] | None = None,
    ) -> npt.NDArray[np.float64]:
        """Scores pairs given without start and end tokens.

        Args:
            sources, targets: as many sources as targets, each an int32 array [length].
            batch_size: int > 0. The maximum number of pairs in a batch. Pairs of similar length
                share a batch.
            on_batch: called after each batch with its number of pairs.

        Returns:
            float64 [pairs], in the given order: the log-probability of each target in nats, end
            token included.

        Raises:
            ValueError: if `sources` and `targets` differ in length, or `batch_size` is not
                positive.
        """
        if len(sources) != len(targets):
            raise ValueError(
                f"expected as many targets as sources, {len(sources)}; got {len(targets)}"
            )
        if batch_size < 1:
            raise ValueError(f"`batch_size` must be positive; got {batch_size}.")
        lengths = [[len(source) for source in sources], [len(target) for target in targets]]
        order = np.lexsort(lengths)[::-1]  # longest target first, then longest source
        results = np.zeros(len(sources))
        first = 0
        while first < len(order):
            longest = _width(len(targets[order[first]]) + 1)
            indices = order[first:][: min(batch_size, max(self._max_tokens // longest, 1))]
            first += len(indices)
            batch = _padded_batch([sources[i] for i in indices], [targets[i] for i in indices])
            results[indices] = np.asarray(
                self._score(batch["source"], batch["target_inputs"], batch["target_outputs"])
            )
            if on_batch is not None:
                on_batch(len(indices))
        return results


def target_log_probs(model: Any, source: Any, target_inputs: Any, target_outputs: Any) -> Any:
    """Log-probabilities of targets in nats, end token included: float [batch].

    Args:
        model: `Seq2Seq`.
        source, target_inputs, target_outputs: int32 [batch, length], see `batching.make_batch`.
    """
    logits = model({"source": source, "target_inputs": target_inputs})
    losses, _ = token_cross_entropy(target_outputs, logits)
    return -ops.sum(losses, axis=1)


def _padded_batch(sources: Sequence[Ids], targets: Sequence[Ids]) -> Batch:
    """A batch padded to its longest sequences; for static shapes, to multiples of WIDTH_STEP."""
    if not has_static_shapes():
        return make_batch(sources, targets)
    widths = (_width(max(map(len, side)) + 1) for side in (sources, targets))
    return make_batch(sources, targets, *widths)


def _width(longest: int) -> int:
    """The padded length of a batch whose longest sequence has `longest` tokens."""
    return round_up(longest, WIDTH_STEP) if has_static_shapes() else longest

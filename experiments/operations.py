"""How much arithmetic a training update needs, to put beside what the machine can do."""

from collections.abc import Iterable, Sequence
from typing import Any

from keras import ops


def training_operations(model: Any, lengths: Sequence[int]) -> float:
    """Floating-point operations of the matrix products of updates, on real tokens alone.

    Two for each weight of a kernel and token (and sentence, in the bridge), and as many for each
    row that is made or read; the backward pass has twice those of the forward pass. Element-wise
    work, such as the hidden layer of an additive score, is not counted.

    Args:
        model: `Seq2Seq`.
        lengths: tokens of each sentence, end token included; sources are as long as targets.
    """
    embeddings = {id(model.source_embedding.embeddings), id(model.target_embedding.embeddings)}
    bridge = _kernels(model.bridge.trainable_weights)
    weights = _kernels(w for w in model.trainable_weights if id(w) not in embeddings) - bridge
    attention = model.cell.attention
    width = model.encode(ops.ones((1, 1), dtype="int32"))[0].rows.shape[-1]
    rows = attention.num_rows
    # A memory of fixed size is made of every position and read at every step.
    products = sum(
        2 * length * width * (length if rows is None else 2 * rows) for length in lengths
    )
    return 3.0 * (2.0 * weights * sum(lengths) + 2.0 * bridge * len(lengths) + products)


def _kernels(weights: Iterable[Any]) -> int:
    """How many numbers the matrices among the weights have."""
    return sum(w.shape[0] * w.shape[1] for w in weights if len(w.shape) == 2)

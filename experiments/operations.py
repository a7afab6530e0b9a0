"""How much arithmetic a training update needs, to put beside what the machine can do."""

from collections.abc import Sequence
from typing import Any

from keras import ops


def training_operations(model: Any, lengths: Sequence[int]) -> float:
    """Floating-point operations of the matrix products of updates, on real tokens alone.

    Two for each weight of a kernel and token, and as many for each row that is made or read; the
    backward pass has twice those of the forward pass. Element-wise work, such as the hidden layer
    of an additive score, is not counted.

    Args:
        model: `Seq2Seq`.
        lengths: tokens of each sentence, end token included; sources are as long as targets.
    """
    embeddings = {id(model.source_embedding.embeddings), id(model.target_embedding.embeddings)}
    weights = sum(
        weight.shape[0] * weight.shape[1]
        for weight in model.trainable_weights
        if len(weight.shape) == 2 and id(weight) not in embeddings
    )
    attention = model.cell.attention
    width = model.encode(ops.ones((1, 1), dtype="int32"))[0].rows.shape[-1]
    rows = attention.num_rows
    # A memory of fixed size is made of every position and read at every step.
    products = sum(
        2 * length * width * (length if rows is None else 2 * rows) for length in lengths
    )
    return 3.0 * (2.0 * weights * sum(lengths) + products)

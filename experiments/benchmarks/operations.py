"""How much arithmetic a training update needs, to put beside what the machine can do."""

from collections.abc import Iterable, Sequence
from typing import Any

from keras import ops


def training_operations(model: Any, lengths: Sequence[int]) -> float:
    """Floating-point operations of the matrix products of updates, on real tokens alone.

    As the equations have it, whether or not the projections of a small vocabulary are looked up.
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


class StepOperations:
    """Floating-point operations of the matrix products of one step of one hypothesis.

    As the equations have it: the token's embedding, the context and the state through the lowest
    cell's kernel, nothing folded and nothing looked up. Counted in TensorFlow's graph of a step for
    sources of two lengths, between which attentions that read the source grow linearly.

    Args:
        model: `Seq2Seq`.
    """

    def __init__(self, model: Any) -> None:
        short, long = 32, 64
        first, second = (_step_operations(model, length) for length in (short, long))
        self._growth = (second - first) / (long - short)
        self._constant = first - self._growth * short

    def __call__(self, source_length: int) -> float:
        """For a source of so many tokens, the end token included."""
        return self._constant + self._growth * source_length


def _step_operations(model: Any, source_length: int) -> float:
    import tensorflow as tf

    memory, cell_states = model.encode(ops.ones((1, source_length), dtype="int32"))
    state = model.cell.initial_state(memory, 1, cell_states)
    embedded = model.target_embedding(ops.ones((1, 1), dtype="int32"))

    def step(embedded: Any, memory: Any, state: Any) -> Any:
        output, _, _ = model.cell(embedded, memory, state)
        return model.to_logits(output)

    traced = tf.function(step, autograph=False).get_concrete_function(embedded, memory, state)
    total = 0.0
    for operation in traced.graph.get_operations():
        if "MatMul" in operation.type:
            left, (out,) = operation.inputs[0].shape, operation.outputs
            inner = left[-2] if operation.node_def.attr["transpose_a"].b else left[-1]
            total += 2.0 * inner * out.shape.num_elements()
    return total

"""Length penalties: how scores of hypotheses of different lengths are compared."""

from typing import Any

from keras import ops


def length_penalty(lengths: Any, exponent: float) -> Any:
    """What a log-probability is divided by.

    Source: Wu et al. (2016), equation 14: ((5 + length) / 6) ** exponent.

    Args:
        lengths: int, any shape. Tokens without the end token.
        exponent: float. 0 divides by 1.

    Returns:
        float32, the shape of `lengths`.
    """
    lengths = ops.cast(lengths, "float32")
    return ((5.0 + lengths) / 6.0) ** exponent


def best_penalty(lengths: Any, limits: Any, exponent: float) -> Any:
    """The penalty, at any length from `lengths` to `limits`, that favours a log-probability most.

    A log-probability is negative, so that is the largest; the penalty is monotonic in length.
    """
    return ops.maximum(length_penalty(lengths, exponent), length_penalty(limits, exponent))

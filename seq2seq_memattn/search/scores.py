"""The scores that rank hypotheses: log-probability, length, coverage."""

from typing import Any

from keras import ops

from seq2seq_memattn.search.options import SearchOptions

LEAST_COVERAGE = 1e-6  # the logarithm of 0 would rule a hypothesis out


def score(log_probs: Any, lengths: Any, penalty: Any, options: SearchOptions) -> Any:
    """The scores of hypotheses, by which search ranks them: float32, the shape of `log_probs`.

    Source: Wu et al. (2016), equation 14: log P / penalty + coverage penalty. To this, search adds
    a reward for each token.

    Args:
        log_probs: float32. In nats.
        lengths: int32. Tokens without the end token.
        penalty: float32, from `coverage_penalty`; () if there is no coverage penalty.
        options: the options of the search.
    """
    found = log_probs / length_penalty(lengths, options.length_penalty)
    bonus = score_bonus(lengths, penalty, options)
    return found if isinstance(bonus, tuple) else found + bonus


def score_bonus(lengths: Any, penalty: Any, options: SearchOptions) -> Any:
    """What is added to a log-probability divided by its length penalty; () if nothing is."""
    if options.length_reward:
        reward = options.length_reward * ops.cast(lengths, "float32")
        return reward if isinstance(penalty, tuple) else reward + penalty
    return penalty


def best_score(log_probs: Any, lengths: Any, limits: Any, options: SearchOptions) -> Any:
    """An upper bound on the scores that hypotheses can reach at any length from theirs to `limits`.

    Log-probabilities and coverage penalties are never positive. A step can only lower the former
    and raise the latter, at most to 0, so the bound has the log-probabilities so far and a coverage
    penalty of 0.
    """
    found = log_probs / best_penalty(lengths, limits, options.length_penalty)
    best_length = limits if options.length_reward > 0.0 else lengths
    bonus = score_bonus(best_length, (), options)
    return found if isinstance(bonus, tuple) else found + bonus


def length_penalty(lengths: Any, exponent: float) -> Any:
    """Length penalty: the divisor of a log-probability.

    Source: Wu et al. (2016), equation 14: ((5 + length) / 6) ** exponent.

    Args:
        lengths: int, any shape. Tokens without the end token.
        exponent: float. If it is 0, the divisor is 1.

    Returns:
        float32, the shape of `lengths`.
    """
    lengths = ops.cast(lengths, "float32")
    if not exponent:
        return ops.ones_like(lengths)
    return ((5.0 + lengths) / 6.0) ** exponent


def best_penalty(lengths: Any, limits: Any, exponent: float) -> Any:
    """The most favourable penalty of any length from `lengths` to `limits`.

    This is the largest one, since a log-probability is negative. The penalty is monotonic in
    length, so the largest is at one end.
    """
    return ops.maximum(length_penalty(lengths, exponent), length_penalty(limits, exponent))


def coverage_penalty(coverage: Any, is_token: Any, weight: float) -> Any:
    """Coverage penalty: at most 0, and 0 once the attention has read every source position.

    Source: Wu et al. (2016), equation 14: weight * sum_i log(min(sum_j p_ij, 1)), for the
    alignment p_ij of target step j to source position i.

    Args:
        coverage: float32 [batch, beam, source_length]. Sums of alignments over the steps.
        is_token: bool [batch, source_length]. Whether a position is not padding.
        weight: float.

    Returns:
        float32 [batch, beam].
    """
    logs = ops.log(ops.clip(coverage, LEAST_COVERAGE, 1.0))
    return weight * ops.sum(ops.where(is_token[:, None, :], logs, 0.0), axis=2)

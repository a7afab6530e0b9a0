"""The best successors of a beam's hypotheses, chosen from all beam x vocabulary candidates."""

import math
from typing import Any, NamedTuple

import keras
from keras import ops

from seq2seq_memattn.compute.rows import batch_gather
from seq2seq_memattn.vocabulary import END_ID

DEAD = -1e30  # log-probability of what must not be chosen; finite, so sums are never NaN
MANY = 4096  # if a sentence has at least this many successors, they are compared in blocks
FIRST = END_ID + 1  # no target has padding or the start token; the end token is handled apart


def is_dead(log_probs: Any) -> Any:
    """Whether log-probabilities mark entries that are not hypotheses and must not be chosen."""
    return log_probs <= DEAD / 2


class Successors(NamedTuple):
    """Log-probabilities of the successors of hypotheses; arrays are [batch, beam].

    Fields:
        end: float32. Log-probability of the successor that ends here, with the end token.
        go_on: float32. A successor with another token has the token's logit plus `go_on` as its
            log-probability.
        end_penalty, go_on_penalty: float32. Divisors of these log-probabilities for the ranking.
        end_bonus, go_on_bonus: float32. Added to the quotients; () if nothing is added.
    """

    end: Any
    go_on: Any
    end_penalty: Any
    go_on_penalty: Any
    end_bonus: Any = ()
    go_on_bonus: Any = ()


def best_successors(successors: Successors, logits: Any) -> tuple[Any, Any, Any]:
    """The best successors of each sentence, as many as it has hypotheses, best first.

    Args:
        successors: `Successors`.
        logits: float32 [batch, beam, vocab_size]. Padding and the start token are ignored, since a
            model with little training may prefer them.

    Returns:
        log_probs: float32 [batch, beam].
        parent: int32 [batch, beam].
        token: int32 [batch, beam].
    """
    beam_size, vocab_size = logits.shape[1:]
    few = beam_size * vocab_size < MANY or vocab_size <= FIRST
    choose = _from_all if few else _from_blocks
    return choose(successors, logits, beam_size, vocab_size)


def _from_all(
    successors: Successors, logits: Any, beam_size: int, vocab_size: int
) -> tuple[Any, Any, Any]:
    tokens = ops.arange(vocab_size, dtype="int32")
    is_end = tokens == END_ID
    end, go_on, end_penalty, go_on_penalty, *bonuses = _for_each_token(successors)
    totals = ops.where(is_end, end, ops.where(tokens >= FIRST, logits, DEAD) + go_on)
    bonus = () if isinstance(bonuses[0], tuple) else ops.where(is_end, *bonuses)
    ranked = _ranked(totals, ops.where(is_end, end_penalty, go_on_penalty), bonus)
    return _best(_flat(ranked), _flat(totals), None, beam_size, vocab_size)


def _from_blocks(
    successors: Successors, logits: Any, beam_size: int, vocab_size: int
) -> tuple[Any, Any, Any]:
    """Two stages: the beam_size best successors are in as many blocks, with the best maxima."""
    end, go_on, *factors = _for_each_token(successors)
    end_penalty, go_on_penalty, end_bonus, go_on_bonus = factors
    size = block_size(vocab_size - FIRST)
    num_blocks = (vocab_size - FIRST) // size
    rest = FIRST + size * num_blocks
    # A block holds every num_blocks-th token: block maxima are elementwise maxima of `size` rows.
    rows = ops.reshape(logits[:, :, FIRST:rest], (-1, beam_size, size, num_blocks))
    maxima = _ranked(ops.max(rows, axis=2) + go_on, go_on_penalty, go_on_bonus)
    _, blocks = ops.top_k(_flat(maxima), beam_size)
    blocks = ops.cast(blocks, "int32")
    parents = blocks // num_blocks
    first = parents * vocab_size + FIRST + blocks % num_blocks
    inside = first[:, :, None] + num_blocks * ops.arange(size, dtype="int32")
    found = ops.reshape(batch_gather(_flat(logits), _flat(inside)), (-1, beam_size, size))
    found = found + batch_gather(go_on, parents)

    starts = vocab_size * ops.arange(beam_size, dtype="int32")[:, None] + 0 * first[:, :, None]
    of_parents = keras.tree.map_structure(
        lambda array: batch_gather(array, parents), (go_on_penalty, go_on_bonus)
    )
    parts = [
        (_ranked(found, *of_parents), found, inside),
        (_ranked(end, end_penalty, end_bonus), end, starts + END_ID),
    ]
    if rest < vocab_size:
        left = logits[:, :, rest:] + go_on
        places = starts + ops.arange(rest, vocab_size, dtype="int32")
        parts.append((_ranked(left, go_on_penalty, go_on_bonus), left, places))
    ranked, totals, places = (
        ops.concatenate([_flat(array) for array in arrays], axis=1)
        for arrays in zip(*parts, strict=True)
    )
    return _best(ranked, totals, places, beam_size, vocab_size)


def _for_each_token(successors: Successors) -> Successors:
    return keras.tree.map_structure(lambda array: array[:, :, None], successors)


def _ranked(totals: Any, penalty: Any, bonus: Any) -> Any:
    ranked = totals / penalty
    return ranked if isinstance(bonus, tuple) else ranked + bonus


def _best(
    ranked: Any, totals: Any, places: Any, beam_size: int, vocab_size: int
) -> tuple[Any, Any, Any]:
    """The best of successors [batch, n]; `places` are their indices in beam x vocabulary."""
    _, best = ops.top_k(ranked, beam_size)
    best = ops.cast(best, "int32")
    chosen = best if places is None else batch_gather(places, best)
    return batch_gather(totals, best), chosen // vocab_size, chosen % vocab_size


def _flat(array: Any) -> Any:
    """[batch, m, n] -> [batch, m * n]."""
    return ops.reshape(array, (-1, array.shape[1] * array.shape[2]))


def block_size(count: int) -> int:
    """Tokens in a block: the square root of `count`, or a bit more if fewer are then left over.

    If the size is the square root, both stages compare equally many values.
    """
    root = math.isqrt(count)
    return min(range(root, 2 * root), key=lambda size: count % size)

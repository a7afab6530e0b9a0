"""Greedy search: the most probable token at each step."""

from typing import Any, NamedTuple

from keras import ops

from seq2seq_memattn.search.beam import beam_search


class GreedyResult(NamedTuple):
    """One target per source.

    Fields:
        tokens: int32 [batch, max_length]. Ends with the end token, then padding.
        log_probs: float32 [batch]. Sums over tokens, in nats, the end token included.
        lengths: int32 [batch]. Tokens without the end token.
        is_finished: bool [batch]. False where the limit cut a target.
    """

    tokens: Any
    log_probs: Any
    lengths: Any
    is_finished: Any

    @property
    def steps(self) -> Any:
        """Steps that each target took, its end token included: int32 [batch]."""
        return self.lengths + ops.cast(self.is_finished, "int32")


def greedy_search(
    model: Any, source: Any, max_length: Any = None, *, jit_compile: bool = False
) -> GreedyResult:
    """Greedy search: takes the most probable token at each step, as a beam of one hypothesis does.

    Args:
        model, source, max_length, jit_compile: see `beam_search`.

    Returns:
        `GreedyResult`.

    Example:
    >>> import numpy as np
    >>> from seq2seq_memattn import ModelConfig, Seq2Seq, greedy_search
    >>> model = Seq2Seq(ModelConfig(source_vocab_size=9, target_vocab_size=9))
    >>> tuple(greedy_search(model, np.array([[5, 3, 2]]), max_length=6).tokens.shape)
    (1, 6)
    """
    found = beam_search(model, source, beam_size=1, max_length=max_length, jit_compile=jit_compile)
    return GreedyResult(*(getattr(found, name)[:, 0] for name in GreedyResult._fields))

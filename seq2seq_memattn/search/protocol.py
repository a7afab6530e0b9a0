"""What search asks of a model."""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class SearchedModel(Protocol):
    """A model as search sees it; `PreparedModel` makes one of a `Seq2Seq`.

    The memory is read by every step and stays as it is. The state goes from step to step: search
    reorders its hypotheses, so it is a structure of arrays [batch, queries, ...].

    Its ids: 0 is padding, which search never writes, 1 starts a target, and 2 ends it. With other
    ids, make a `Searchable`.
    """

    def start(self, source: Any, num_queries: int) -> tuple[Any, Any]:
        """Reads the source.

        Args:
            source: int32 [batch, source_length].
            num_queries: int > 0. Hypotheses of each source.

        Returns:
            memory: batch first; the same for all hypotheses of a source.
            state: [batch, num_queries] first.
        """

    def step(self, tokens: Any, memory: Any, state: Any) -> tuple[Any, Any, Any]:
        """Takes every hypothesis one token further.

        Args:
            tokens: int32 [batch, queries]. The tokens fed back.
            memory, state: from `start` and the step before.

        Returns:
            logits: float [batch, queries, vocab_size].
            scores: [batch, queries, rows], of the attention.
            state: as it came.
        """


@runtime_checkable
class AlignedModel(SearchedModel, Protocol):
    """A model that also says what its attention looked at."""

    def alignment(self, scores: Any, memory: Any) -> Any:
        """Source positions behind each query: float [batch, queries, source_length]."""

    def positions_scored(self, scores: Any, memory: Any) -> Any:
        """Encoder states scored for each query: float32 [batch, queries]."""

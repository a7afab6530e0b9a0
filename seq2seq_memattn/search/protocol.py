"""The interface of models for search."""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class SearchedModel(Protocol):
    """The interface of a model for search that is neither a `Seq2Seq` nor a `Searchable`.

    Every step reads the memory, which never changes. The state goes from step to step. Search
    reorders its hypotheses, so the state is a structure of arrays [batch, queries, ...].

    The ids of the model: 0 is padding, which search never writes, 1 starts a target, and 2 ends it.
    For a model with other ids, make a `Searchable`.
    """

    def start(self, source: Any, num_queries: int) -> tuple[Any, Any]:
        """Encodes the sources.

        Args:
            source: int32 [batch, source_length].
            num_queries: int > 0. Hypotheses of each source.

        Returns:
            memory: arrays [batch, ...]; the same for all hypotheses of a source.
            state: arrays [batch, num_queries, ...].
        """

    def step(self, tokens: Any, memory: Any, state: Any) -> tuple[Any, Any, Any]:
        """Extends every hypothesis by one step.

        Args:
            tokens: int32 [batch, queries]. The tokens fed back.
            memory: from `start`.
            state: from `start` or the step before.

        Returns:
            logits: float [batch, queries, vocab_size].
            scores: [batch, queries, rows]. The attention's.
            state: the new state, with the structure of the old one.
        """


@runtime_checkable
class AlignedModel(SearchedModel, Protocol):
    """A `SearchedModel` that can also show what its attention read.

    `beam_search` with `return_alignments=True` needs these two methods.
    """

    def alignment(self, scores: Any, memory: Any) -> Any:
        """Source positions behind each query: float [batch, queries, source_length].

        Args:
            scores: from `step`; the queries of several steps may be side by side.
            memory: from `start`.
        """

    def positions_scored(self, scores: Any, memory: Any) -> Any:
        """Number of encoder states scored for each query: float32 [batch, queries].

        Args:
            scores, memory: see `alignment`.
        """

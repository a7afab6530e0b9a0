"""The interfaces of models for search."""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class SearchedModel(Protocol):
    """The interface of a model for search that is neither a `Seq2Seq` nor a `Searchable`.

    Every step reads the memory, which never changes. The state is passed from step to step. Search
    reorders the hypotheses, which are the model's queries, so the state must be a structure of
    arrays [batch, queries, ...].

    The ids of the model: 0 is padding, which search never writes, 1 starts a target, and 2 ends it.
    For a model with other ids, make a `Searchable` if it has an `AttentionDecoder`; otherwise let
    `step` take and return ids and logits in this order.
    """

    def start(self, source: Any, num_queries: int) -> tuple[Any, Any]:
        """Encodes the sources.

        Args:
            source: int32 [batch, source_length], or features, with at least three axes.
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
            scores: [batch, queries, rows]. The attention's scores.
            state: the new state, with the structure of the old one.
        """


class Preparable(Protocol):
    """What search needs of a `Seq2Seq` or a `Searchable` to prepare it.

    Search numbers its tokens from 0: padding, start, end, then all others. For a `Seq2Seq`, these
    numbers are the ids; a `Searchable` maps between them and its ids.

    Attributes:
        cell: `AttentionCell`.
        pad_id: int. The id of padding in sources and targets.
        vocab_size: int. The number of target ids.
        num_tokens: int. The number of search's tokens: larger than `vocab_size` if one id has
            several roles, such as padding and end.
        source_input: KerasTensor or None. Shape and dtype of sources, if they are known.
        source_vocab_size: int or None. The number of source ids, if it is known.
        longest_source: int or None. The maximum number of tokens in a source, end token included;
            None: no limit.
        variables: list of the model's variables.
    """

    cell: Any
    pad_id: int

    @property
    def vocab_size(self) -> int: ...

    @property
    def num_tokens(self) -> int: ...

    @property
    def source_input(self) -> Any: ...

    @property
    def source_vocab_size(self) -> int | None: ...

    @property
    def longest_source(self) -> int | None: ...

    @property
    def variables(self) -> list[Any]: ...

    def encode(self, source: Any) -> tuple[Any, Any]:
        """The attention's memory of sources, and the cells' first states or None."""

    def token_embeddings(self) -> Any:
        """The vector that is fed back for each token: float [num_tokens, n]."""

    def output_map(self) -> tuple[Any, Any] | None:
        """Matrix [units, num_tokens] and bias of the output layer; None if there is no such map."""

    def to_logits(self, mixed: Any) -> Any:
        """Logits [..., num_tokens] of the cell's outputs, in float32 at least."""

    def to_ids(self, tokens: Any) -> Any:
        """The ids of search's tokens."""

    def to_tokens(self, ids: Any) -> Any:
        """Search's tokens for ids: the inverse of `to_ids`."""


@runtime_checkable
class AlignedModel(SearchedModel, Protocol):
    """A `SearchedModel` that can also show what its attention read.

    `beam_search` with `return_alignments=True` or a `coverage_penalty` needs these two methods.
    """

    def alignment(self, scores: Any, memory: Any) -> Any:
        """How much each query read from each position: float [batch, queries, source_length].

        Args:
            scores: from `step`; the queries of several steps may be side by side.
            memory: from `start`.
        """

    def positions_scored(self, scores: Any, memory: Any) -> Any:
        """Number of encoder states scored for each query: float32 [batch, queries].

        Args:
            scores, memory: see `alignment`.
        """

"""A model made ready for search: what does not change from step to step is computed once."""

from typing import Any

import keras
from keras import ops

from seq2seq_memattn.cell import AttentionCellState
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.products import Products


class DecodingModel:
    """What search sees of a `Seq2Seq`: `start` and `step`.

    The embeddings' map into the lowest cell is a table with one row per token, and each cell has
    one product per step. Make it outside of the loop (and inside the `tf.function`) that uses
    it: it holds values of the weights, not the weights.

    Args:
        model: `Seq2Seq`.
    """

    def __init__(self, model: Seq2Seq) -> None:
        self._model = model
        self._cell = model.cell
        embeddings = ops.cast(model.target_embedding.embeddings, model.compute_dtype)
        self._embeddings = embeddings
        self._steps = self._cell.steps(embeddings.shape[-1])
        self._table = self._steps[0].project(embeddings)  # [vocab, n]
        self._weights = {name: w for step in self._steps for name, w in step.weights().items()}
        self.vocab_size = model.config.target_vocab_size

    def start(self, source: Any, num_queries: int) -> tuple[Any, AttentionCellState]:
        """Reads the source.

        Args:
            source: int32 [batch, source_length].
            num_queries: int > 0. Hypotheses of each source.

        Returns:
            memory: record, batch first; the same for all hypotheses of a source.
            state: record, [batch, num_queries] first.
        """
        memory, cell_states = self._model.encode(source)
        return memory, self._cell.initial_state(memory, num_queries, cell_states)

    def step(
        self, tokens: Any, memory: Any, state: AttentionCellState
    ) -> tuple[Any, Any, AttentionCellState]:
        """Advances every hypothesis by one token.

        Args:
            tokens: int32 [batch, queries]. The tokens fed back.
            memory, state: from `start` and the step before.

        Returns:
            log_probs: float32 at least, [batch, queries, vocab_size].
            scores: [batch, queries, rows], of the attention.
            state: as it came.
        """
        num_queries = tokens.shape[1]
        projected = ops.take(self._table, ops.reshape(tokens, (-1,)), axis=0)
        output, scores, state = self._cell.advance(
            self._steps,
            Products(self._weights, self._rows(memory)),
            projected,
            memory,
            state,
            num_queries,
            inputs=ops.take(self._embeddings, tokens, axis=0),
        )
        logits = self._model.to_logits(self._cell.mix(output, state.context))
        return ops.log_softmax(logits, axis=-1), scores, state

    def _rows(self, memory: Any) -> Any:
        return memory.rows if memory.rows.shape[-1] else None

    def alignment(self, scores: Any, memory: Any) -> Any:
        """Source positions behind each query: [batch, queries, source_length]."""
        return self._cell.attention.alignment(scores, memory)

    def positions_scored(self, scores: Any, memory: Any) -> Any:
        """Encoder states scored for each query: float32 [batch, queries]."""
        return self._cell.attention.positions_scored(scores, memory)


def for_decoding(model: Any) -> Any:
    """A `DecodingModel` for a `Seq2Seq`; anything else that has `start` and `step` as it is."""
    return DecodingModel(model) if isinstance(model, keras.Model) else model

"""Decoding of whole files: sorted by length, in batches, back in the order of the file."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import numpy.typing as npt

from seq2seq_memattn.data.batching import pad_batch
from seq2seq_memattn.search.beam import BeamResult, beam_search
from seq2seq_memattn.vocabulary import END_ID

Ids = npt.NDArray[np.int32]


class Hypothesis(NamedTuple):
    """One target for one source.

    Fields:
        tokens: int32 [length], without the end token.
        log_prob: float. Sum over tokens, in nats, the end token included.
        normalised_log_prob: float. After the length penalty.
        alignment: float [steps, source_length], or None if not asked for. The end token is a
            step, where the limit did not cut it off.
    """

    tokens: Ids
    log_prob: float
    normalised_log_prob: float
    alignment: Any = None


class BatchDecoder:
    """Decodes lists of sources with one compiled graph for all batches.

    Args:
        model: `Seq2Seq`. Its weights are read anew at each call.
        beam_size, n_best, length_penalty_exponent, max_length, return_alignments: see
            `beam_search`.
    """

    def __init__(
        self,
        model: Any,
        beam_size: int = 10,
        n_best: int = 1,
        length_penalty_exponent: float = 0.0,
        max_length: int | None = None,
        return_alignments: bool = False,
    ) -> None:
        def search(source: Any) -> BeamResult:
            return beam_search(
                model,
                source,
                beam_size,
                n_best,
                length_penalty_exponent,
                max_length,
                return_alignments=return_alignments,
            )

        self._search = compiled(model, search)
        self._n_best = n_best

    def __call__(
        self,
        sources: Sequence[Ids],
        batch_size: int,
        on_batch: Callable[[int], None] | None = None,
    ) -> list[list[Hypothesis]]:
        """Decodes sources given without their end token.

        Args:
            sources: int32 arrays [length].
            batch_size: int > 0. Sources decoded at a time.
            on_batch: called with the number of sources after each batch.

        Returns:
            For each source, in the order given, its n_best hypotheses, best first.

        Raises:
            ValueError: if `batch_size` is not positive.
        """
        results: list[list[Hypothesis]] = [[] for _ in sources]
        for indices, batch in sorted_batches(sources, batch_size):
            found = keras.tree.map_structure(np.asarray, self._search(batch))
            for row, index in enumerate(indices):
                results[index] = [
                    _hypothesis(found, row, rank, len(sources[index]) + 1)
                    for rank in range(self._n_best)
                ]
            if on_batch is not None:
                on_batch(len(indices))
        return results


def compiled(
    model: Any, search: Callable[..., Any], ranks: Sequence[int] = (2,)
) -> Callable[..., Any]:
    """The graph of a function of int32 arrays: one for all sizes, or on JAX one for each.

    Args:
        model: the model that the function uses; its weights are read anew at each call.
        search: the function.
        ranks: the number of axes of each argument; by default one [batch, source_length].
    """
    if keras.backend.backend() == "jax":
        return _compiled_by_jax(model, search)
    import tensorflow as tf

    signature = [tf.TensorSpec([None] * rank, tf.int32) for rank in ranks]
    return tf.function(search, input_signature=signature, autograph=False)


def _compiled_by_jax(model: Any, search: Callable[..., Any]) -> Callable[..., Any]:
    import jax

    @jax.jit
    def run(values: Any, *arguments: Any) -> Any:
        mapping = list(zip(model.variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return search(*arguments)

    return lambda *arguments: run([v.value for v in model.variables], *arguments)


def sorted_batches(
    sources: Sequence[Ids], batch_size: int
) -> Iterator[tuple[npt.NDArray[np.int64], Ids]]:
    """Batches by falling length, each with the places of its sources.

    There is little padding, and the first batch shows how much memory is needed.
    """
    if batch_size < 1:
        raise ValueError(f"`batch_size` must be positive; got {batch_size}.")
    lengths = np.array([len(source) for source in sources])
    order = np.argsort(-lengths, kind="stable")
    for first in range(0, len(order), batch_size):
        indices = order[first : first + batch_size]
        ended = [np.append(sources[i], np.int32(END_ID)) for i in indices]
        yield indices, pad_batch(ended, int(lengths[indices].max()) + 1)


def _hypothesis(found: BeamResult, row: int, rank: int, source_length: int) -> Hypothesis:
    length = int(found.lengths[row, rank])
    alignment = None
    if not isinstance(found.alignments, tuple):
        steps = length + int(found.is_finished[row, rank])
        alignment = found.alignments[row, rank, :steps, :source_length]
    return Hypothesis(
        found.tokens[row, rank, :length],
        float(found.log_probs[row, rank]),
        float(found.normalised_log_probs[row, rank]),
        alignment,
    )

"""Decoding of whole files: in batches sorted by length, with results in the file's order."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seq2seq_memattn.compute.int8 import has_int8_kernel
from seq2seq_memattn.compute.precision import rounds_to_int8
from seq2seq_memattn.data.batching import pad_batch, with_ends
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.search.aligned_models import check_coverage
from seq2seq_memattn.search.compiled_search import CompiledSearch
from seq2seq_memattn.search.ensemble import members
from seq2seq_memattn.search.in_graph import BeamResult
from seq2seq_memattn.search.options import Lengths, SearchOptions
from seq2seq_memattn.search.prepare import has_fixed_memory
from seq2seq_memattn.search.rules import limits_of
from seq2seq_memattn.search.top_successors import is_dead
from seq2seq_memattn.vocabulary import PAD_ID

Ids = npt.NDArray[np.int32]

DEFAULT_OPTIONS, DEFAULT_LENGTHS = SearchOptions(), Lengths()
MANY = 64  # with this many sources or more, XLA saves more time than it takes to compile


class Hypothesis(NamedTuple):
    """One target for one source.

    Fields:
        tokens: int32 [length], without the end token.
        log_prob: float. Sum over tokens, in nats, the end token included.
        normalised_log_prob: float. After the length penalty, with length reward and coverage
            penalty.
        alignment: float [steps, source_length], or None if not requested. There is one step for
            each token, and one for the end token if there is one.
        positions_scored: float. Mean number of encoder states scored per step, or None if not
            requested.
        scores: float [steps, rows]. The attention's scores, including those of padding rows; None
            if not requested or if they are not a tensor.
    """

    tokens: Ids
    log_prob: float
    normalised_log_prob: float
    alignment: Any = None
    positions_scored: float | None = None
    scores: Any = None


class BatchDecoder:
    """Decodes lists of sources.

    Args:
        model: `Seq2Seq` or `Ensemble`. Its weights are read anew at each call, unless `is_frozen`.
        options: `SearchOptions`.
        lengths: `Lengths`.
        return_alignments: see `beam_search`.
        jit_compile: bool or None. Whether XLA compiles the steps: they run faster, but compiling
            takes a second or more for each new shape. None: true for 64 sources or more, unless
            the graph is faster without XLA: for batches of several sources with int8 products and
            a fixed-size memory, on a CPU with VNNI.
        folded: bool or None. Whether to apply the linear maps of the context to the memory's rows,
            once per source, instead of to the context at each step. None: if this saves
            multiply-adds.
        is_frozen: bool. Whether the weights never change, so that they need to be read and prepared
            for search only once. Preparing them takes longer than decoding a sentence.
    """

    def __init__(
        self,
        model: Any,
        options: SearchOptions = DEFAULT_OPTIONS,
        lengths: Lengths = DEFAULT_LENGTHS,
        return_alignments: bool = False,
        jit_compile: bool | None = None,
        folded: bool | None = None,
        is_frozen: bool = False,
    ) -> None:
        for one in members(model):
            if not isinstance(one, Seq2Seq):
                raise ValueError(
                    f"`model`: expected a Seq2Seq or an Ensemble of them; got a "
                    f"{type(one).__name__}. Search it with `beam_search`."
                )
        if options.coverage_penalty:
            check_coverage(model)
        self._model = model
        self._is_frozen = is_frozen
        self._folded = folded
        self._options = options
        self._lengths = lengths
        self._return_alignments = return_alignments
        self._jit_compile = jit_compile
        self._searches: dict[tuple[int, bool], CompiledSearch] = {}

    def __call__(
        self,
        sources: Sequence[Ids],
        batch_size: int,
        on_batch: Callable[[int], None] | None = None,
        prefixes: Sequence[Ids] | None = None,
        seeds: npt.NDArray[np.uint32] | None = None,
    ) -> list[list[Hypothesis]]:
        """Decodes sources given without their end token.

        Args:
            sources: int32 arrays [length].
            batch_size: int > 0. Sources decoded at a time. If this is 1, or there is only one
                source, each search is a single graph.
            on_batch: called after each batch with its number of sources.
            prefixes: int32 arrays [length], the first tokens of each source's targets; None: no
                prefixes. Targets are returned with their prefixes.
            seeds: uint32 [sources, 2], the random key of each source, for sampling; None in beam
                search.

        Returns:
            For each source, in the order given, its n_best hypotheses, best first, or its samples.

        Raises:
            ValueError: if `batch_size` is not positive, or the number of prefixes or seeds is not
                that of the sources.
        """
        for name, values in (("prefixes", prefixes), ("seeds", seeds)):
            if values is not None and len(values) != len(sources):
                raise ValueError(
                    f"`{name}`: expected one for each of {len(sources)} sources; got {len(values)}"
                )
        results: list[list[Hypothesis]] = [[] for _ in sources]
        search = None
        for indices, batch in sorted_batches(sources, batch_size):
            if search is None:
                search = self._search(1 if len(sources) == 1 else batch_size, len(sources))
            lengths = np.count_nonzero(batch != PAD_ID, axis=1)
            prefix: Any = ()
            prefix_lengths: Any = 0
            if prefixes is not None:
                chosen = [prefixes[i] for i in indices]
                prefix = pad_batch(chosen, max(1, *map(len, chosen)))
                prefix_lengths = np.count_nonzero(prefix != PAD_ID, axis=1)
            limits, least = limits_of(self._lengths, lengths, prefix_lengths)
            found = search(
                batch,
                np.asarray(limits),
                () if least is None else np.asarray(least),
                prefix,
                () if seeds is None else seeds[indices],
            )
            for row, index in enumerate(indices):
                results[index] = [
                    _hypothesis(found, row, rank, len(sources[index]) + 1)
                    for rank in range(self._options.n_best)
                ]
            if on_batch is not None:
                on_batch(len(indices))
        return results

    def _search(self, batch_size: int, num_sources: int) -> CompiledSearch:
        """The search for batches of this size, with the weights as they are now."""
        jit = self._jit_compile
        if jit is None:
            jit = num_sources >= MANY and not self._is_faster_without_xla(batch_size)
        if (batch_size, jit) not in self._searches:
            self._searches[batch_size, jit] = CompiledSearch(
                self._model,
                self._options,
                batch_size,
                self._return_alignments,
                jit,
                self._folded,
            )
        elif not self._is_frozen:
            self._searches[batch_size, jit].update_weights()
        return self._searches[batch_size, jit]

    def _is_faster_without_xla(self, batch_size: int) -> bool:
        """Whether the graph is faster without XLA: it has an int8 kernel, and XLA adds little.

        The kernel prepares a matrix at each call, so it gains nothing for a single source. If the
        memory has no fixed size, the additive scores of long sources are slow without XLA.
        """
        is_int8 = all(rounds_to_int8(model.cell) for model in members(self._model))
        fits = batch_size > 1 and has_fixed_memory(self._model)
        return is_int8 and fits and has_int8_kernel()


def sorted_batches(
    sources: Sequence[Ids], batch_size: int
) -> Iterator[tuple[npt.NDArray[np.int64], Ids]]:
    """Yields batches in order of decreasing length, each with the indices of its sources.

    This order needs little padding, and the first batch shows how much memory is needed.
    """
    if batch_size < 1:
        raise ValueError(f"`batch_size` must be positive; got {batch_size}.")
    lengths = np.array([len(source) for source in sources])
    order = np.argsort(-lengths, kind="stable")
    for first in range(0, len(order), batch_size):
        indices = order[first : first + batch_size]
        yield indices, with_ends([sources[i] for i in indices])


def _hypothesis(found: BeamResult, row: int, rank: int, source_length: int) -> Hypothesis:
    length, is_finished = int(found.lengths[row, rank]), bool(found.is_finished[row, rank])
    if is_dead(found.log_probs[row, rank]):  # its tokens have no meaning
        length, is_finished = 0, False
    alignment = positions = scores = None
    if not isinstance(found.alignments, tuple):
        steps = length + is_finished
        alignment = found.alignments[row, rank, :steps, :source_length]
        positions = float(found.positions_scored[row, rank])
        if np.size(found.scores):
            scores = found.scores[row, rank, :steps]
    return Hypothesis(
        found.tokens[row, rank, :length],
        float(found.log_probs[row, rank]),
        float(found.normalised_log_probs[row, rank]),
        alignment,
        positions,
        scores,
    )

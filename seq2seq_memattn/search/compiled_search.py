"""Search of whole batches of NumPy arrays, compiled once for many batches.

In plain TensorFlow, a search is one graph. XLA and JAX compile for fixed shapes. With XLA or JAX,
Python therefore drives the search, a chunk of steps at a time, and removes finished sentences
between chunks. A chunk's graph takes only the arrays that its steps read, so few graphs are
compiled: with a memory of fixed size, one for each batch size. The search of a single sentence is
always one graph.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from seq2seq_memattn.compute.backend import WIDTH_STEP, compiled, has_static_shapes
from seq2seq_memattn.compute.ids import has_ids
from seq2seq_memattn.data.batching import round_up
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.search.chunks import (
    Compaction,
    Results,
    Unfinished,
    drop_done,
    first_results,
    keep_all,
    search_by_chunks,
)
from seq2seq_memattn.search.ensemble import members
from seq2seq_memattn.search.in_graph import BeamResult, best, read_in_steps, search_in_graph
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.search.prepare import (
    Prepared,
    folds_rows,
    has_fixed_memory,
    prepared,
    prepared_weights,
)
from seq2seq_memattn.search.replay import replay_attention
from seq2seq_memattn.search.rules import Rules, SourceRules
from seq2seq_memattn.search.step import Beam, Written, extend_beam, first_state
from seq2seq_memattn.vocabulary import PAD_ID

Ids = npt.NDArray[np.int32]

CHUNK = 16  # steps between two checks for finished sentences
ALONE = 64  # a graph for one sentence is made for a multiple of this many steps


class CompiledSearch:
    """Compiled search of batches with one model.

    Args:
        model: `Seq2Seq`, `Searchable` or `Ensemble`. Its weights are read by the constructor and by
            `update_weights`.
        options: `SearchOptions`.
        return_alignments: see `beam_search`.
        batch_size: int > 0. The maximum number of sources in a call.
        jit_compile: bool. Whether XLA compiles the steps: they run faster, but compiling takes a
            second or more for each new shape. With XLA, which JAX always uses, batches are padded
            to one of a few sizes: `batch_size`, half of it, and so on. The sources of a `Seq2Seq`,
            which ignores padding, are padded to a multiple of 16 tokens if a graph that XLA
            compiles depends on their length.
        folded: bool or None. Whether to apply the linear maps of the context to the memory's rows,
            see `folding.py`; None: if this saves multiply-adds.
    """

    def __init__(
        self,
        model: Any,
        options: SearchOptions,
        batch_size: int,
        return_alignments: bool = False,
        jit_compile: bool = False,
        folded: bool | None = None,
    ) -> None:
        self._model = model
        self._options = options
        self._batch_size = batch_size
        self._jit_compile = jit_compile
        self._per_shape = jit_compile or has_static_shapes()  # is each shape compiled separately?
        self._folded = folds_rows(model, options.beam_size) if folded is None else folded
        self._is_alone = batch_size == 1
        self._ignores_padding = all(isinstance(one, Seq2Seq) for one in members(model))
        self._start = compiled(model, self._start_graph, jit_compile and self._is_alone)
        self._chunk = compiled(model, self._chunk_graph, jit_compile)
        self._whole: dict[int, Any] = {}  # by number of steps, 0 for any
        # These are compiled, too: run operation by operation, they would take as long as all steps
        # of a small batch.
        self._take = compiled(model, _take_graph)
        self._finish = compiled(model, self._finish_graph)
        self._make_weights = compiled(model, self._prepared_weights)
        self._replay: Any = compiled(model, self._replay_graph) if return_alignments else None
        self.update_weights()

    def update_weights(self) -> None:
        """Reads the model's weights anew."""
        self._weights = self._make_weights()

    def __call__(
        self, source: Ids, limits: Ids, least: Any = (), prefix: Any = (), seeds: Any = ()
    ) -> BeamResult:
        """Searches for the targets of a batch.

        Args:
            source: int32 [batch, source_length], ending with the end token, then padding; or
                features, [batch, ...].
            limits: int32 [batch]. Steps a hypothesis may take, end token included.
            least: int32 [batch]. The minimum number of tokens before the end token; () if there is
                no minimum.
            prefix: int32 [batch, n]. See `SourceRules`; () if there are no prefixes.
            seeds: uint32 [batch, 2], see `row_seeds`, for sampling; () in beam search.

        Returns:
            `BeamResult` of NumPy arrays.
        """
        num_sources = len(source)
        search = self._search_whole
        if self._per_shape and not self._is_alone:
            search = self._search_from_python
        padded = self._pad(source)
        least = least if isinstance(least, tuple) else least.astype(np.int32)[:, None]
        if self._per_shape and not isinstance(prefix, tuple):
            missing = round_up(prefix.shape[1], WIDTH_STEP) - prefix.shape[1]
            prefix = np.pad(prefix, ((0, 0), (0, missing)))
        sources = SourceRules(limits.astype(np.int32)[:, None], least, prefix, seeds=seeds)
        sources = _with_rows(sources, len(padded))
        if self._options.coverage_penalty:
            sources = sources._replace(is_token=padded != self._model.pad_id)
        found = search(padded, sources)
        found = keras.tree.map_structure(lambda array: np.asarray(array)[:num_sources], found)
        written = found.tokens[:, :, : limits.max()]
        tokens = np.full([*written.shape[:2], limits.max()], PAD_ID, np.int32)
        tokens[:, :, : written.shape[2]] = written
        found = found._replace(tokens=tokens)
        if self._replay:
            found = self._with_alignments(found, source)
        return found._replace(tokens=self._model.to_ids(found.tokens))

    def start(self, source: Ids) -> tuple[Any, Any]:
        """Encodes a batch; returns memory and state of the search before the first step."""
        return self._start(self._weights, self._pad(source))

    def _search_whole(self, source: Ids, sources: SourceRules) -> BeamResult:
        num_steps = max(round_up(int(sources.limits.max()), ALONE), ALONE) if self._is_alone else 0
        if num_steps not in self._whole:
            graph = partial(self._whole_graph, num_steps)
            self._whole[num_steps] = compiled(self._model, graph, self._jit_compile)
        return self._whole[num_steps](self._weights, source, sources)

    def _search_from_python(self, source: Ids, sources: SourceRules) -> BeamResult:
        memory, state = self._start(self._weights, source)
        num_steps = int(sources.limits.max())
        found = first_results(len(source), self._options, num_steps, CHUNK)
        found = keras.tree.map_structure(np.array, found)  # writable
        # The number of steps is rounded up, so that few different graphs are compiled.
        state = first_state(state, Rules(self._options, sources), round_up(num_steps, ALONE))
        unfinished = Unfinished(np.arange(len(source)), memory, state, found.beam)

        def extend(unfinished: Unfinished, step: Any) -> tuple[Any, ...]:
            rest = keras.tree.map_structure(lambda array: array[unfinished.rows], sources)
            step, *taken, done = self._chunk(
                self._weights, unfinished.memory, unfinished.state, unfinished.beam, step, rest
            )
            return np.int32(step), *taken, np.asarray(done)

        compaction = Compaction(CHUNK, _loop, _put, self._keep, drops=True)
        return self._finish(search_by_chunks(extend, unfinished, found, num_steps, compaction))

    def _prepared_weights(self) -> Any:
        return prepared_weights(self._model, self._folded)

    def _prepared(self, weights: Any) -> Prepared:
        return prepared(self._model, self._folded, weights)

    def _start_graph(self, weights: Any, source: Any) -> tuple[Any, Any]:
        model = self._prepared(weights)
        memory, state = model.start(source, self._options.beam_size)
        return read_in_steps(model, memory, self._options), state

    def _chunk_graph(
        self, weights: Any, memory: Any, state: Any, beam: Any, step: Any, sources: SourceRules
    ) -> tuple[Any, ...]:
        model, rules = self._prepared(weights), Rules(self._options, sources)
        return extend_beam(model, memory, state, beam, step, rules, CHUNK)

    def _whole_graph(
        self, num_steps: int, weights: Any, source: Any, sources: SourceRules
    ) -> BeamResult:
        model, rules = self._prepared(weights), Rules(self._options, sources)
        compaction = keep_all(num_steps) if num_steps else drop_done()
        memory, state = model.start(source, self._options.beam_size)
        num_steps = num_steps or ops.max(sources.limits)
        return search_in_graph(model, memory, state, rules, num_steps, compaction)

    def _finish_graph(self, found: Results) -> BeamResult:
        return best(found, None, self._options)

    def _pad(self, source: Ids) -> Ids:
        """Pads sources to the shape of a compiled graph. Added rows have a limit of 0 steps."""
        batch, width = source.shape[:2]
        if self._per_shape:
            batch = self._size(batch)
            # TensorFlow encodes batches without XLA: only the memory's shape must be fixed.
            has_fixed_size = has_fixed_memory(self._model) and not self._options.coverage_penalty
            is_free = not self._is_alone and keras.backend.backend() != "jax" and has_fixed_size
            if self._ignores_padding and not is_free:
                width = round_up(width, WIDTH_STEP)
        if not has_ids(source):
            return source[np.minimum(np.arange(batch), len(source) - 1)]  # repeats the last one
        padded = np.full([batch, width], self._model.pad_id, np.int32)
        padded[:, 0] = source[0, 0]
        padded[: len(source), : source.shape[1]] = source
        return padded

    def _size(self, num_sentences: int) -> int:
        """The smallest compiled batch size that is large enough: `batch_size` halved or doubled."""
        size = self._batch_size
        while size < num_sentences:
            size *= 2
        while (size + 1) // 2 >= num_sentences and size > 1:
            size = (size + 1) // 2
        return size

    def _keep(self, unfinished: Unfinished, done: Any) -> tuple[Unfinished, bool]:
        """The unfinished sentences, filled up with finished ones, and whether any is unfinished."""
        alive, others = np.flatnonzero(~done), np.flatnonzero(done)
        size = self._size(len(alive))
        if not len(alive) or size == len(done):
            return unfinished, bool(len(alive))
        kept = np.concatenate([alive, others[: size - len(alive)]])
        return Unfinished(unfinished.rows[kept], *self._take(unfinished[1:], kept)), True

    def _replay_graph(self, source: Any, tokens: Any, taken: Any) -> Any:
        model = prepared(self._model, folded=False)
        memory, state = model.start(source, tokens.shape[1])
        return replay_attention(model, memory, state, tokens, taken)

    def _with_alignments(self, found: BeamResult, source: Ids) -> BeamResult:
        replayed = self._replay(source, found.tokens, found.steps)
        scores, alignments, positions = keras.tree.map_structure(np.asarray, replayed)
        return found._replace(scores=scores, alignments=alignments, positions_scored=positions)


def _with_rows(arrays: Any, num_rows: int) -> Any:
    """NumPy arrays [batch, n], with rows of zeros appended."""

    def padded(array: Any) -> Any:
        missing = num_rows - len(array)
        return np.pad(array, ((0, missing), (0, 0))) if missing else array  # `np.pad` is slow

    return keras.tree.map_structure(padded, arrays)


def _loop(goes_on: Callable[..., Any], body: Callable[..., Any], start: Any) -> Any:
    while goes_on(*start):
        start = body(*start)
    return start


def _put(found: Results, index: int, rows: Any, beam: Beam, written: Written) -> Results:
    def put(whole: Any, part: Any, place: Any) -> None:
        for array, new in zip(keras.tree.flatten(whole), keras.tree.flatten(part), strict=True):
            array[place] = np.asarray(new)

    put(found.beam, beam, rows)
    put(found.written, written, (index, rows))
    return found


def _take_graph(structure: Any, rows: Any) -> Any:
    return keras.tree.map_structure(lambda array: ops.take(array, rows, axis=0), structure)

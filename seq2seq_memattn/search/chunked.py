"""Beam search of whole batches, driven from outside of the graph, a chunk of steps at a time.

Between chunks, sentences that are done leave the batch. Only what a chunk needs enters its graph,
so that XLA compiles it for few shapes: with a memory of fixed size, for a single one. A sentence
that comes alone has nobody to leave: it is searched in one graph, its encoding included.
"""

from functools import partial
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from seq2seq_memattn.compute.backend import WIDTH_STEP, has_static_shapes
from seq2seq_memattn.data.batching import round_up
from seq2seq_memattn.search.beam import BeamResult, best
from seq2seq_memattn.search.compiled import compiled
from seq2seq_memattn.search.follow import follow
from seq2seq_memattn.search.limits import check_sizes
from seq2seq_memattn.search.prepared import DecodingModel, folds_rows, make_weights
from seq2seq_memattn.search.step import Rules, Written, advance, first_beam, is_done, trace
from seq2seq_memattn.vocabulary import END_ID, PAD_ID

Ids = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int64]

CHUNK = 16  # steps between two looks at what is done
ALONE = 64  # a graph that searches one sentence is made for a multiple of so many steps


class ChunkedSearch:
    """Searches batches with one model.

    Args:
        model: `Seq2Seq`. Its weights are read by `update_weights`, once when this is made.
        beam_size, n_best, length_penalty_exponent, return_alignments: see `beam_search`.
        batch_size: int > 0. The most sources that come at a time.
        jit_compile: bool. Whether XLA compiles the steps: faster, but a second or more for each
            new shape. Batches are then padded to `batch_size`, or to a half of it, and so on.
        folded: bool or None. Whether the maps of the context are folded into the rows; None: where
            that saves multiply-adds.
        force_lengths: bool. Whether every hypothesis takes exactly the steps that it may take: for
            timing untrained weights.

    Raises:
        ValueError: if `beam_size` or `n_best` is out of range.
    """

    def __init__(
        self,
        model: Any,
        beam_size: int,
        n_best: int,
        length_penalty_exponent: float,
        batch_size: int,
        return_alignments: bool = False,
        jit_compile: bool = False,
        folded: bool | None = None,
        force_lengths: bool = False,
    ) -> None:
        check_sizes(beam_size, n_best)
        self._model = model
        self._beam_size = beam_size
        self._n_best = n_best
        self._exponent = length_penalty_exponent
        self._batch_size = batch_size
        self._jit_compile = jit_compile
        self._per_shape = jit_compile or has_static_shapes()  # is each shape compiled by itself?
        self._force_lengths = force_lengths
        self._folded = folds_rows(model, beam_size, None) if folded is None else folded
        self._is_alone = batch_size == 1
        self._start = compiled(model, self._start_graph, jit_compile and self._is_alone)
        self._chunk = compiled(model, self._chunk_graph, jit_compile)
        self._alone: dict[int, Any] = {}
        # As graphs: operation by operation, a small batch would wait for them as long as for all
        # its steps.
        self._take = compiled(model, _take_graph)
        self._finish = compiled(model, self._finish_graph)
        self._make_weights = compiled(model, self._make_decoding_weights)
        self._follow: Any = compiled(model, self._follow_graph) if return_alignments else None
        self.update_weights()

    def update_weights(self) -> None:
        """Reads the model's weights anew."""
        self._weights = self._make_weights()

    def __call__(self, source: Ids, limits: Ids) -> BeamResult:
        """Searches for the targets of a batch.

        Args:
            source: int32 [batch, source_length], ending with the end token, then padding.
            limits: int32 [batch]. Steps a hypothesis may take, end token included.

        Returns:
            `BeamResult` of NumPy arrays.
        """
        num_sources = len(source)
        search = self._search_alone if self._is_alone else self._search
        found = search(self._pad(source), limits.astype(np.int32))
        found = keras.tree.map_structure(lambda array: np.asarray(array)[:num_sources], found)
        written = found.tokens[:, :, : limits.max()]
        tokens = np.full([*written.shape[:2], limits.max()], PAD_ID, np.int32)
        tokens[:, :, : written.shape[2]] = written
        found = found._replace(tokens=tokens)
        return self._with_alignments(found, source) if self._follow else found

    def start(self, source: Ids) -> tuple[Any, Any]:
        """What comes before the first step: encodes a batch; memory and state of the search."""
        return self._start(self._weights, self._pad(source))

    def _search_alone(self, source: Ids, limits: Ids) -> BeamResult:
        num_steps = round_up(int(limits.max()), ALONE)
        if num_steps not in self._alone:
            graph = partial(self._alone_graph, num_steps)
            self._alone[num_steps] = compiled(self._model, graph, self._jit_compile)
        return self._alone[num_steps](self._weights, source, limits[:, None])

    def _search(self, source: Ids, limits: Ids) -> BeamResult:
        memory, state = self._start(self._weights, source)
        limits = np.pad(limits, (0, len(source) - len(limits)))[:, None]
        whole = _Whole(len(limits), self._beam_size)
        self._advance(memory, state, limits, whole)
        return self._finish(whole.beam, whole.written(), limits)

    def _advance(self, memory: Any, state: Any, limits: Ids, whole: "_Whole") -> None:
        """Takes all steps and puts what they give into `whole`."""
        rows = np.arange(len(limits))  # where the sentences that are left come from
        beam, step = whole.beam, np.int32(0)
        while True:
            step, beam, state, written, done = self._chunk(
                self._weights, memory, state, beam, step, limits[rows]
            )
            whole.put(rows, beam, written)
            alive = np.flatnonzero(~np.asarray(done))
            if not len(alive):
                return
            kept = self._kept(alive, len(rows))
            if len(kept) < len(rows):
                rows = rows[kept]
                memory, state, beam = self._take((memory, state, beam), kept)

    def _make_decoding_weights(self) -> Any:
        return make_weights(self._model, self._folded)

    def _decoding_model(self, weights: Any) -> DecodingModel:
        return DecodingModel(self._model, self._folded, weights)

    def _start_graph(self, weights: Any, source: Any) -> tuple[Any, Any]:
        model = self._decoding_model(weights)
        memory, state = model.start(source, self._beam_size)
        return model.without_sources(memory), state

    def _chunk_graph(
        self, weights: Any, memory: Any, state: Any, beam: Any, step: Any, limits: Any
    ) -> tuple[Any, ...]:
        model, rules = self._decoding_model(weights), self._rules(limits)
        step, beam, state, written = advance(model, memory, state, beam, step, rules, CHUNK)
        return step, beam, state, written, is_done(beam, step, rules)

    def _alone_graph(self, num_steps: int, weights: Any, source: Any, limits: Any) -> BeamResult:
        model, rules = self._decoding_model(weights), self._rules(limits)
        memory, state = model.start(source, self._beam_size)
        beam, step = first_beam(ops.shape(source)[0], self._beam_size), ops.zeros((), "int32")
        _, beam, _, written = advance(model, memory, state, beam, step, rules, num_steps)
        return best(beam, written.tokens, rules)

    def _finish_graph(self, beam: Any, written: Any, limits: Any) -> BeamResult:
        return best(beam, trace(written), self._rules(limits))

    def _rules(self, limits: Any) -> Rules:
        forced = limits - 1 if self._force_lengths else ()
        return Rules(self._beam_size, self._n_best, self._exponent, True, limits, forced)

    def _pad(self, source: Ids) -> Ids:
        """Sources as compiled graphs take them, with more that will be done at once."""
        batch, width = source.shape
        if self._per_shape:
            batch = self._size(batch)
            # TensorFlow encodes batches without XLA, for which only the memory's shape counts.
            has_fixed_size = self._model.cell.attention.num_rows is not None
            if self._is_alone or keras.backend.backend() == "jax" or not has_fixed_size:
                width = round_up(width, WIDTH_STEP)
        padded = np.full([batch, width], PAD_ID, np.int32)
        padded[:, 0] = END_ID
        padded[: len(source), : source.shape[1]] = source
        return padded

    def _size(self, num_sentences: int) -> int:
        """The smallest batch that is compiled and takes so many: the whole, a half, a quarter..."""
        size = max(self._batch_size, num_sentences)
        while (size + 1) // 2 >= num_sentences and size > 1:
            size = (size + 1) // 2
        return size

    def _kept(self, alive: Rows, size: int) -> Rows:
        """Which rows go on: those that are alive, and others where the size needs them."""
        if not self._per_shape:  # what is saved must be worth the copy
            return alive if len(alive) <= 0.75 * size else np.arange(size)
        done = np.setdiff1d(np.arange(size), alive)
        return np.concatenate([alive, done[: self._size(len(alive)) - len(alive)]])

    def _follow_graph(self, source: Any, tokens: Any, taken: Any) -> Any:
        model = DecodingModel(self._model, folded=False)
        return follow(model, *model.start(source, tokens.shape[1]), tokens, taken)

    def _with_alignments(self, found: BeamResult, source: Ids) -> BeamResult:
        scores, alignments, positions = self._follow(source, found.tokens, found.steps)
        return found._replace(
            alignments=np.asarray(alignments),
            scores=np.asarray(scores),
            positions_scored=np.asarray(positions),
        )


class _Whole:
    """The hypotheses of a whole batch, and what they wrote, while its sentences leave the search.

    Attributes:
        beam: `Beam` of NumPy arrays. Of a sentence that left, as it was then.
    """

    def __init__(self, batch: int, beam_size: int) -> None:
        self.beam = keras.tree.map_structure(np.array, first_beam(batch, beam_size))
        self._chunks: list[Written] = []

    def put(self, rows: Rows, beam: Any, written: Any) -> None:
        """Takes over what a chunk gave for some rows."""
        batch, beam_size = self.beam.tokens.shape
        for whole, part in zip(self.beam, beam, strict=True):
            whole[rows] = np.asarray(part)
        tokens = np.full([batch, beam_size, CHUNK], PAD_ID, np.int32)
        ancestors = np.tile(np.arange(beam_size, dtype=np.int32), (batch, 1))
        tokens[rows], ancestors[rows] = np.asarray(written[0]), np.asarray(written[1])
        self._chunks.append(Written(tokens, ancestors))

    def written(self) -> Written:
        """All chunks, stacked."""
        return Written(*(np.stack(arrays) for arrays in zip(*self._chunks, strict=True)))


def _take_graph(structure: Any, rows: Any) -> Any:
    return keras.tree.map_structure(lambda array: ops.take(array, rows, axis=0), structure)

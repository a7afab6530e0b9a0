"""The graphs of an exported model: one per signature, from strings to strings."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from seq2seq_memattn.attention.k_memory import KMemory
from seq2seq_memattn.checks import MAX_SEED
from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.runs.directory import Run
from seq2seq_memattn.runs.pair_scorer import MAX_LOGITS, target_log_probs
from seq2seq_memattn.runs.translator import SourceReader
from seq2seq_memattn.search.draw import row_seeds
from seq2seq_memattn.search.eager import Inputs
from seq2seq_memattn.search.in_graph import BeamResult, search_sources
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.search.prepare import Prepared, folds_rows, prepared, prepared_weights
from seq2seq_memattn.search.replay import replay_attention, replay_log_probs
from seq2seq_memattn.search.rules import limits_of, prefix_lengths
from seq2seq_memattn.search.top_successors import is_dead
from seq2seq_memattn.serving.export.graph_text import graph_vocabulary, pieces_with_ends
from seq2seq_memattn.serving.export.options import ExportOptions
from seq2seq_memattn.serving.export.rounded_weights import RoundedMatrix, RoundedWeights
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID

Outputs = dict[str, Any]
Function = Callable[..., Outputs]


class _Sources(NamedTuple):
    """Encoded texts.

    Fields:
        ids: int32 [batch, source_length], with end tokens (if the model has them) and padding.
        is_empty: bool [batch]. Whether a text has no tokens.
        is_cut: bool [batch]. Whether a text was longer than the limit and was cut.
    """

    ids: Any
    is_empty: Any
    is_cut: Any


class TextModel(NamedTuple):
    """A model with what it needs to read and write text.

    Fields:
        model: `Seq2Seq`, `Searchable` or `Ensemble`.
        source_text, target_text: `GraphVocabulary`.
        source_end: int or None. The id that ends every source; None: sources have no end token.
        limit: int or None. Longer sources are cut to this number of tokens, end token included.
            None: no limit.
        length: int or None. The length to which every source is padded; None: that of the longest.
    """

    model: Any
    source_text: Any
    target_text: Any
    source_end: int | None
    limit: int | None
    length: int | None = None


def text_model_of(run: Run, options: ExportOptions) -> TextModel:
    """The `TextModel` of a run."""
    return TextModel(
        run.model,
        graph_vocabulary(run.source_vocabulary),
        graph_vocabulary(run.target_vocabulary),
        source_end=END_ID,
        limit=SourceReader(run, options.max_source_length).limit,
    )


class ServingGraph:
    """The signatures of an exported model, as functions of tensors [batch].

    Args:
        served: `TextModel`.
        options: `ExportOptions`.
        in_int8: bool. Whether matrices are stored in eight bits.

    Attributes:
        modules: the vocabularies, which the SavedModel must keep beside the variables.
    """

    def __init__(self, served: TextModel, options: ExportOptions, in_int8: bool = False) -> None:
        self._model = served.model
        self._served = served
        self._options = options
        self.modules = [served.source_text, served.target_text]
        self._folded = folds_rows(self._model, options.beam_size)
        # The weights for search are computed once and stored as variables; otherwise, a graph would
        # compute them at every call.
        self._rounded = RoundedWeights(self._model.variables) if in_int8 else None
        stored = self._rounded.stored if self._rounded else partial(tf.Variable, trainable=False)
        weights = prepared_weights(self._model, self._folded)
        self._weights = keras.tree.map_structure(stored, weights)

    def function(self, name: str) -> Any:
        """Returns the traced function of a signature."""
        answers: dict[str, Function] = {
            "serving_default": self.translate,
            "align": self.align,
            "score": self.score,
            "complete": self.complete,
            "sample": self.sample,
        }
        function = tf.function(_of_any_batch(answers[name]), autograph=False)
        specs = (
            tf.TensorSpec([None], tf.int32 if each == "seed" else tf.string, name=each)
            for each in self._options.signatures[name]
        )
        with self._rounded or contextlib.nullcontext():
            return function.get_concrete_function(*specs)

    @property
    def matrices(self) -> list[RoundedMatrix]:
        """Every `RoundedMatrix` that the functions so far read; the SavedModel must keep them."""
        return self._rounded.matrices if self._rounded else []

    def complaints(self) -> dict[str, Any]:
        """A dict from the name of an input to a function that checks its texts.

        A server checks texts before it batches them. There is no function for an input whose
        vocabulary can encode every text. Each function maps string [batch] to string [batch]: why a
        text cannot be encoded, "" if it can.
        """
        served = self._served
        vocabularies = {
            "text": served.source_text,
            "translation": served.target_text,
            "prefix": served.target_text,
        }
        spec = tf.TensorSpec([None], tf.string)
        return {
            name: tf.function(vocabulary.complaints, [spec], autograph=False)
            for name, vocabulary in vocabularies.items()
            if vocabulary.is_closed
        }

    def translate(self, text: Any) -> Outputs:
        """The best translations of each text.

        Returns:
            translations: string [batch, n_best], best first.
            log_probs: float32 [batch, n_best]. Sums over tokens in nats, end token included.
            num_tokens: int32 [batch, n_best]. Tokens, including the end token if it was written.
            source_is_cut: bool [batch]. Whether a text was longer than the limit and was cut.
        """
        sources, decoder = self._read(text), self._decoder()
        options = self._options.search(self._model)
        *_, found = self._search(decoder, sources.ids, options)
        return self._translations(sources, found, options.n_best)

    def complete(self, text: Any, prefix: Any) -> Outputs:
        """The best translations of each text that begin with a given prefix.

        Args:
            text: string [batch].
            prefix: string [batch]. "" does not restrict a translation.

        Returns:
            The outputs of `translate`. Translations and log-probabilities include the prefix.
            prefix_is_cut: bool [batch]. Whether a prefix was longer than the limit of sources and
                was cut.
        """
        sources, decoder = self._read(text), self._decoder()
        given = self._served.target_text.encode(prefix)
        # One long prefix would make its batch take many steps.
        given, is_cut = _cut(given, self._options.max_source_length, has_end=False)
        given = _padded(given.with_flat_values(self._model.to_tokens(given.flat_values)), PAD_ID)
        options = self._options.search(self._model)
        *_, found = self._search(decoder, sources.ids, options, given)
        return {**self._translations(sources, found, options.n_best), "prefix_is_cut": is_cut}

    def align(self, text: Any) -> Outputs:
        """The best translations of each text, and the alignment of the very best.

        Returns:
            The outputs of `translate`, and
            source_pieces: string [batch, source_length]. Tokens, "</s>", then "" as padding.
            target_pieces: string [batch, target_length]. The same for the best translation.
            alignments: float32 [batch, target_length, source_length].
            alpha: float32 [batch, source_length, num_slots]. Encoder scores; only for K-memory.
            beta: float32 [batch, target_length, num_slots]. Decoder scores; only for K-memory.
        """
        sources, decoder = self._read(text), self._decoder()
        options = self._options.search(self._model)
        memory, state, found = self._search(decoder, sources.ids, options)
        steps = _steps(sources, found)[:, 0]
        tokens = found.tokens[:, 0] * tf.sequence_mask(steps, tf.shape(found.tokens)[2], tf.int32)
        tokens = tokens[:, : tf.reduce_max(tf.concat([steps, [0]], axis=0))]
        beta, alignments, _ = replay_attention(
            decoder, memory, state, tokens[:, None], steps[:, None]
        )
        outputs = self._translations(sources, found, self._options.n_best) | {
            "source_pieces": self._source_pieces(sources.ids),
            "target_pieces": pieces_with_ends(
                self._served.target_text,
                self._model.to_ids(tokens),
                is_end=tokens == END_ID,
                is_padding=tokens == PAD_ID,
            ),
            "alignments": tf.cast(alignments[:, 0], tf.float32),
        }
        if isinstance(getattr(memory, "attention", None), KMemory):  # no ensemble
            outputs["alpha"] = tf.cast(memory.attention.alpha, tf.float32)
            outputs["beta"] = tf.cast(beta[:, 0], tf.float32)
        return outputs

    def score(self, text: Any, translation: Any) -> Outputs:
        """Log-probabilities of given translations.

        An empty source is scored as an end token alone, although `translate` translates it by an
        empty text without the model.

        Returns:
            log_probs: float32 [batch]. Sums over tokens in nats, end token included.
            num_tokens: int32 [batch]. Tokens of the translations, end token included.
            source_is_cut: bool [batch]. See `translate`.
            translation_is_cut: bool [batch]. Whether a translation was longer than the limit of
                sources and was cut; `log_probs` are then those of the part kept.
        """
        sources, target = self._read(text), self._served.target_text.encode(translation)
        # One long translation would make the logits of its batch large.
        target, is_cut = _cut(target, self._options.max_source_length, has_end=True)
        target = target.with_flat_values(self._model.to_tokens(target.flat_values))
        outputs = _padded(tf.concat([target, _column(target, END_ID)], axis=1), PAD_ID)
        if not isinstance(self._model, Seq2Seq):
            decoder = self._decoder()
            memory, state = decoder.start(sources.ids, 1)
            log_probs = replay_log_probs(decoder, memory, state, outputs[:, None])[:, 0]
        else:
            inputs = _padded(tf.concat([_column(target, START_ID), target], axis=1), PAD_ID)
            log_probs = self._log_probs(sources.ids, inputs, outputs)
        return {
            "log_probs": tf.cast(log_probs, tf.float32),
            "num_tokens": tf.cast(target.row_lengths() + 1, tf.int32),
            "source_is_cut": sources.is_cut,
            "translation_is_cut": is_cut,
        }

    def sample(self, text: Any, seed: Any) -> Outputs:
        """Translations of each text, drawn at random.

        Args:
            text: string [batch].
            seed: int32 [batch]. The same text and seed always give the same translations, whatever
                else is in the batch. A seed below 0 gives new ones at each call.

        Returns:
            The outputs of `translate`, with num_samples in place of n_best, not sorted.
            log_probs are the model's own; temperature, top_k and top_p do not change them.
        """
        sources, decoder = self._read(text), self._decoder()
        # The raw operation: TensorFlow's function would keep a seed set at export time.
        other = tf.raw_ops.RandomUniformInt(shape=tf.shape(seed), minval=0, maxval=MAX_SEED)
        seeds = row_seeds(tf.where(seed < 0, other, seed), tf.zeros_like(seed))
        options = self._options.samples(self._model)
        *_, found = self._search(decoder, sources.ids, options, seeds=seeds)
        return self._translations(sources, found, options.n_best)

    def _log_probs(self, *pairs: Any) -> Any:
        """`target_log_probs` in parts that keep the logits below MAX_LOGITS: float32 [batch]."""
        num_pairs, num_steps = tf.shape(pairs[-1])[0], tf.shape(pairs[-1])[1]
        size = tf.maximum(MAX_LOGITS // self._model.config.target_vocab_size // num_steps, 1)

        def score(first: Any, found: Any) -> tuple[Any, Any]:
            some = (ids[first : first + size] for ids in pairs)
            log_probs = tf.cast(target_log_probs(self._model, *some), tf.float32)
            return first + size, tf.concat([found, log_probs], axis=0)

        _, found = tf.while_loop(
            lambda first, _: first < num_pairs,
            score,
            (0, tf.zeros([0])),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])),
            parallel_iterations=1,
        )
        return found

    def _read(self, text: Any) -> _Sources:
        ids = self._served.source_text.encode(text)
        end, lengths = self._served.source_end, ids.row_lengths()
        ids, is_cut = _cut(ids, self._served.limit, has_end=end is not None)
        if end is not None:
            ids = tf.concat([ids, _column(ids, end)], axis=1)
        padded = _padded(ids, self._model.pad_id, self._served.length)
        return _Sources(padded, lengths == 0, is_cut)

    def _source_pieces(self, ids: Any) -> Any:
        is_padding = ids == self._model.pad_id
        lengths = tf.reduce_sum(tf.cast(~is_padding, tf.int32), axis=1, keepdims=True)
        is_end = tf.range(tf.shape(ids)[1]) == lengths - 1
        has_end = self._served.source_end is not None
        is_end = is_end if has_end else tf.zeros_like(is_end)
        return pieces_with_ends(self._served.source_text, ids, is_end, is_padding)

    def _decoder(self) -> Prepared:
        weights = keras.tree.map_structure(tf.convert_to_tensor, self._weights)
        return prepared(self._model, self._folded, weights)

    def _search(
        self,
        decoder: Prepared,
        ids: Any,
        options: SearchOptions,
        prefix: Any = (),
        seeds: Any = (),
    ) -> tuple[Any, Any, BeamResult]:
        """See `search_sources`."""
        lengths = tf.reduce_sum(tf.cast(ids != self._model.pad_id, tf.int32), axis=1)
        has_end = self._served.source_end is not None
        limits, least = limits_of(self._options.lengths, lengths, prefix_lengths(prefix), has_end)
        return search_sources(decoder, Inputs(ids, limits, least, prefix), options, seeds)

    def _translations(self, sources: _Sources, found: BeamResult, count: int) -> Outputs:
        """The outputs of `translate`, for `count` translations of each text.

        An empty text has an empty translation, as when translating files. If a text has fewer than
        `count` hypotheses, the missing translations are empty too.
        """
        is_empty = sources.is_empty[:, None]
        tokens = tf.reshape(found.tokens, [-1, tf.shape(found.tokens)[2]])
        steps = _steps(sources, found)
        lengths = tf.minimum(found.lengths, steps)
        ids = tf.RaggedTensor.from_tensor(self._model.to_ids(tokens), tf.reshape(lengths, [-1]))
        return {
            "translations": tf.reshape(self._served.target_text.decode(ids), [-1, count]),
            "log_probs": tf.where(is_empty, 0.0, found.log_probs),
            "num_tokens": steps,
            "source_is_cut": sources.is_cut,
        }


def _steps(sources: _Sources, found: BeamResult) -> Any:
    """The steps of each translation; 0 if its text is empty or its hypothesis is dead.

    A dead hypothesis (see `is_dead`) fills a place for which the search found no hypothesis. Its
    tokens mean nothing, and a vocabulary may lack some of them.
    """
    has_none = sources.is_empty[:, None] | is_dead(found.log_probs)
    return tf.where(has_none, 0, found.steps)


def _of_any_batch(function: Function) -> Function:
    """Makes a function accept empty batches; some TensorFlow kernels divide by the batch size."""

    def call(*inputs: Any) -> Outputs:
        num_texts = tf.shape(inputs[0])[0]
        missing = [[0, tf.maximum(1 - num_texts, 0)]]
        outputs = function(*(tf.pad(each, missing) for each in inputs))
        return {name: output[:num_texts] for name, output in outputs.items()}

    return call


def _cut(ids: Any, limit: int | None, has_end: bool) -> tuple[Any, Any]:
    """Cuts ragged ids [batch, None] to `limit` tokens, counting an end token yet to be added.

    Returns:
        The ids, and whether each row was cut: bool [batch].
    """
    lengths = ids.row_lengths()
    if limit is None:
        return ids, tf.zeros_like(lengths, tf.bool)
    return ids[:, : limit - has_end], lengths > limit - has_end


def _column(ids: Any, token: int) -> Any:
    """A column [batch, 1] of one token, for ragged ids [batch, None]."""
    return tf.fill([ids.nrows(), 1], token)


def _padded(ids: Any, pad_id: int, length: int | None = None) -> Any:
    """Pads ragged ids to `length`, or to at least one column, without which an RNN fails."""
    padded = ids.to_tensor(pad_id, shape=[None, length])
    if length:
        return padded
    missing = tf.maximum(1 - tf.shape(padded)[1], 0)
    return tf.pad(padded, [[0, 0], [0, missing]], constant_values=pad_id)

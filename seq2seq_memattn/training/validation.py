"""Validation during training: BLEU of decoded text, and the loss; all workers share the work."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from seq2seq_memattn.attention.registry import num_slots
from seq2seq_memattn.config import TrainingConfig
from seq2seq_memattn.metrics import smoothed_bleu, tokenised_bleu
from seq2seq_memattn.runs.pair_scorer import PairScorer
from seq2seq_memattn.runs.slot_use import ReferenceScores, slot_use
from seq2seq_memattn.search.batch_decoder import BatchDecoder
from seq2seq_memattn.search.options import SearchOptions
from seq2seq_memattn.text.form import TextForm
from seq2seq_memattn.training.distributed.workers import Workers

VALIDATION_BLEU = {"corpus": tokenised_bleu, "smoothed": smoothed_bleu}
VALIDATION_BATCH = 100  # sentences decoded at a time; does not change the result
SLOT_SENTENCES = 100  # maximum number of sentences on which the use of slots is measured


class Validator:
    """Decodes and scores the first sentences of a split.

    Args:
        model: `Seq2Seq`.
        split: `SplitData`, not shuffled.
        config: `TrainingConfig`.
        workers: `Workers`; each takes its share of the sentences.

    Attributes:
        decoder, scorer: `BatchDecoder` and `PairScorer`.
        num_sentences: int. Number of sentences that this worker decodes and scores.
    """

    def __init__(self, model: Any, split: Any, config: TrainingConfig, workers: Workers) -> None:
        self.decoder: Any = BatchDecoder(model, SearchOptions(config.beam_size))
        self.scorer: Any = PairScorer(model)
        self._split = split
        self._form = TextForm.from_dict(dict(split.manifest.text_form))
        self._form.tokenised([])  # a missing package is an error now, not after many updates
        self._bleu = config.validation_bleu
        self._workers = workers
        self._count = min(len(split), config.valid_examples)
        # Read once: the file might change during the training.
        self._references = split.references(self._count)
        self._share = list(workers.share_of(self._count))
        self.num_sentences = len(self._share)
        largest = -(-self._count // len(workers))
        self._num_calls = -(-largest // VALIDATION_BATCH)
        self._slot_scores = None
        if num_slots(model.config.attention) and workers.is_chief:
            first = range(min(self._count, SLOT_SENTENCES))
            pairs = ([np.asarray(side[i]) for i in first] for side in (split.source, split.target))
            self._slot_scores = ReferenceScores(model, *pairs)

    def __call__(
        self, on_scored: Callable[[int], Any], on_decoded: Callable[[int], Any]
    ) -> tuple[float, float]:
        """Returns validation BLEU, and the loss in nats per target token without label smoothing.

        An exception in a callback ends the validation.

        Args:
            on_scored: called after each scored batch with its number of sentences.
            on_decoded: called with 0 before decoding, and after each decoded batch with its number
                of sentences. All workers call it equally often: workers with fewer batches make
                further calls with 0.
        """
        calls = self._num_calls

        def count(done: int) -> None:
            nonlocal calls
            calls -= 1
            on_decoded(done)

        sources = [np.asarray(self._split.source[i]) for i in self._share]
        targets = [np.asarray(self._split.target[i]) for i in self._share]
        log_probs = self.scorer(sources, targets, VALIDATION_BATCH, on_scored)
        on_decoded(0)
        found = self.decoder(sources, VALIDATION_BATCH, count)
        while calls > 0 and len(self._workers) > 1:
            count(0)
        tokens = self._of_all([hypotheses[0].tokens for hypotheses in found])
        sums = np.array([np.sum(log_probs), sum(len(target) + 1 for target in targets)], np.float64)
        log_prob, num_tokens = self._workers.total(sums)
        decode = self._split.target_vocabulary.decode
        hypotheses = [decode(ids) for ids in tokens]
        # Tokenised as in `evaluate` for its BLEU of tokenised text.
        tokenised = map(self._form.tokenised, (hypotheses, self._references))
        return VALIDATION_BLEU[self._bleu](*tokenised).score, -float(log_prob) / float(num_tokens)

    def slots(self) -> dict[str, float]:
        """How evenly K-memory's slots are read at the steps of the first references.

        See `slot_use`. The result is {} for other attentions, and on all workers but the chief.
        """
        if self._slot_scores is None:
            return {}
        found = slot_use(self._slot_scores())
        return {f"slots_{name}": found[name] for name in ("dead", "corpus", "sentence", "step")}

    def _of_all(self, tokens: Sequence[Any]) -> list[Any]:
        """Collects the target ids of all sentences from all workers."""
        if len(self._workers) == 1:
            return list(tokens)
        lengths = np.zeros(self._count, np.int32)
        lengths[self._share] = [len(ids) for ids in tokens]
        lengths = self._workers.total(lengths)
        ids = np.zeros([self._count, max(1, lengths.max())], np.int32)
        for row, own in zip(self._share, tokens, strict=True):
            ids[row, : len(own)] = own
        ids = self._workers.total(ids.reshape(-1)).reshape(ids.shape)
        return [row[:length] for row, length in zip(ids, lengths, strict=True)]

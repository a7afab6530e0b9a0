"""The training loop: updates, validation, checkpoints, stopping."""

import math
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

from seq2seq_memattn.config import ModelConfig, TrainingConfig
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.data.splits import open_split
from seq2seq_memattn.metrics import smoothed_bleu, tokenised_bleu
from seq2seq_memattn.pair_scorer import PairScorer
from seq2seq_memattn.search.batch_decoder import BatchDecoder
from seq2seq_memattn.text_form import TextForm
from seq2seq_memattn.training.checkpoints import CheckpointFolder, write_arrays
from seq2seq_memattn.training.parts import make_parts
from seq2seq_memattn.training.progress import Progress
from seq2seq_memattn.training.reporting import Reporter
from seq2seq_memattn.training.run_directory import (
    BEST_NAME,
    CHECKPOINTS_NAME,
    check_run,
    load_weights,
    open_run,
    training_lock,
)
from seq2seq_memattn.training.schedule import learning_rate
from seq2seq_memattn.training.watch import Clock, SignalCame, Signals

VALIDATION_BLEU = {"corpus": tokenised_bleu, "smoothed": smoothed_bleu}
MOST_WIDTHS = 4  # of batches, where XLA compiles, if buckets are more
VALIDATION_BATCH = 100  # sentences decoded at a time; does not change the result


class InterruptedRun(Exception):
    """A signal ended the run after a checkpoint.

    Args:
        signal_number: int.
        path: the checkpoint.
    """

    def __init__(self, signal_number: int, path: Path) -> None:
        name = signal.Signals(signal_number).name
        super().__init__(f"{name}: saved {path}; the same command goes on from there")
        self.signal_number = signal_number


class TrainingResult(NamedTuple):
    """How a run ended.

    Fields:
        update: int. Updates done.
        loss: float. Of the last logged updates, nats per target token; None if none was applied.
        best_bleu: float. Best validation BLEU, 0 to 100; -1 if never validated.
        best_update: int.
        seconds: float. Of training, over all starts of the run, validation included.
        skipped: int. Updates skipped for NaN or infinity.
        reason: why it ended: "updates", "bleu" or "patience".
    """

    update: int
    loss: float | None
    best_bleu: float
    best_update: int
    seconds: float
    skipped: int
    reason: str


class Trainer:
    """Trains one model in one run directory, from wherever the directory stands.

    Args:
        run_dir: Path. Made if need be; a run of another configuration is refused.
        data_dir: Path. A data directory with the splits train and valid.
        model_config: `ModelConfig`, its vocabulary sizes those of the data.
        config: `TrainingConfig`.
        init_from: Path or None. A run whose best weights this one begins with; once there is a
            checkpoint, it is not read any more.

    Raises:
        ValueError: for a run of another configuration, one whose checkpoints are all damaged, or
            weights or vocabularies of `init_from` that do not fit.
    """

    def __init__(
        self,
        run_dir: Path,
        data_dir: Path,
        model_config: ModelConfig,
        config: TrainingConfig,
        init_from: Path | None = None,
    ) -> None:
        check_run(run_dir, data_dir, model_config, config, init_from)
        if run_dir.exists():
            with training_lock(run_dir):  # refused at once, not when data and model are there
                pass
        self.run_dir = run_dir
        self.config = config
        self._is_tensorflow = keras.backend.backend() == "tensorflow"
        compiles = config.jit_compile or not self._is_tensorflow
        multiple = _width_step(data_dir, config) if compiles else None
        self.train = open_split(
            data_dir,
            "train",
            config.batch_size,
            config.bucket_width,
            config.seed,
            pad_to_multiple=multiple,
            batch_tokens=config.batch_tokens,
        )
        self.valid = open_split(data_dir, "valid", config.batch_size, shuffle=False)
        self._form = TextForm.from_dict(dict(read_manifest(data_dir).text_form))
        self.model, self.optimizer, self.updater = make_parts(model_config, config)
        self.decoder = BatchDecoder(self.model, config.beam_size)
        self.scorer = PairScorer(self.model)
        self.variables = [*self.model.variables, *self.optimizer.variables]
        self.folder = CheckpointFolder(run_dir / CHECKPOINTS_NAME, config.keep)
        self._notes: list[str] = []
        if init_from is not None and not self.folder.paths():
            _check_vocabularies(init_from, data_dir)
            record, problems = load_weights(init_from, self.model.weights)
            self._notes = [*problems, f"beginning with {init_from}, update {record['update']}"]
        open_run(run_dir, data_dir, model_config, config, init_from)  # nothing was written before
        self.progress = Progress()
        saved, problems = self.folder.restore(self.variables)
        self._checkpoints = self.folder.paths()
        if saved is not None:
            self.progress.load(saved)
            self._notes = [f"{problem}; the one before it is used" for problem in problems]
            self._notes.append(f"going on from update {self.progress.update}")

    def run(self) -> TrainingResult:
        """Trains to the end.

        Raises:
            InterruptedRun: after SIGTERM or SIGINT; a checkpoint was written.
            ValueError: if loss or gradient was not finite several times in a row, the run is
                being trained already, or it was since this trainer read it.
        """
        with training_lock(self.run_dir):
            if self.folder.paths() != self._checkpoints:
                raise ValueError(f"{self.run_dir}: it was trained elsewhere since it was read")
            return self._run()

    def _run(self) -> TrainingResult:
        progress, config = self.progress, self.config
        reporter = Reporter(self.run_dir, progress.update, config.num_updates)
        for note in self._notes:
            reporter.say(note)
        caught = Signals()
        try:
            reason, loss = self._updates(reporter, caught)
        finally:
            caught.restore()
            reporter.close()
        return TrainingResult(
            progress.update,
            loss if math.isfinite(loss) else None,
            progress.best_bleu,
            progress.best_update,
            progress.seconds,
            progress.skipped,
            reason,
        )

    def _updates(self, reporter: Reporter, caught: Signals) -> tuple[str, float]:
        progress, config = self.progress, self.config
        self._clock = Clock(progress.seconds)
        progress.window.start_clock()
        in_a_row = 0
        saved, saved_at = (progress.update, progress.validated), time.monotonic()
        batches = self._batches()
        while True:
            self._validate_if_due(reporter, caught)
            reason = self._reason()
            now = (progress.update, progress.validated)
            is_due = time.monotonic() - saved_at > 60.0 * config.checkpoint_minutes
            if caught.number or (now != saved and (is_due or reason)):
                path = self._save()
                saved, saved_at = now, time.monotonic()
                if caught.number and not reason:
                    raise InterruptedRun(caught.number, path)
            if reason:
                return reason, progress.window.loss
            asked = time.monotonic()
            batch = next(batches)
            progress.window.add_wait(time.monotonic() - asked)
            is_applied = self._update(batch, reporter)
            in_a_row = 0 if is_applied else in_a_row + 1
            if in_a_row >= config.max_nan_updates:
                raise ValueError(self._hopeless(in_a_row))

    def _update(self, batch: Any, reporter: Reporter) -> bool:
        """One update; returns whether it was applied."""
        progress, window = self.progress, self.progress.window
        rate = learning_rate(self.config, progress.update, progress.plateau.decays)
        if self.config.has_schedule:
            self.optimizer.learning_rate = rate
        result = self.updater(batch)
        progress.update += 1
        progress.position = self.train.advance(progress.position, 1)
        progress.seconds = self._clock.seconds()
        if not result.is_applied:
            progress.skipped += 1
            reporter.say(
                f"update {progress.update} skipped: loss {result.loss}, "
                f"gradient norm {result.gradient_norm}"
            )
        window.add(result)
        reporter.advance(window.loss, window.tokens_per_second)
        if progress.update % self.config.log_every == 0:
            figures = {**window.take(), "learning_rate": rate, "seconds": progress.seconds}
            reporter.log("train", progress.update, figures)
        return result.is_applied

    def _batches(self) -> Iterator[Any]:
        if self._is_tensorflow:
            return iter(self.train.tf_dataset(self.progress.position))
        return (batch for batch, _ in self.train.numpy_batches(self.progress.position))

    def _reason(self) -> str | None:
        """Why the run is over, or None."""
        progress, config = self.progress, self.config
        if progress.best_bleu >= config.stop_at_bleu:
            return "bleu"
        if config.patience and progress.stale >= config.patience:
            return "patience"
        is_over = progress.update >= config.num_updates and progress.validated == progress.update
        return "updates" if is_over else None

    def _hopeless(self, in_a_row: int) -> str:
        paths = self.folder.paths()
        last = paths[-1] if paths else "none"
        return (
            f"{in_a_row} updates in a row up to update {self.progress.update} had NaN or infinite "
            f"loss or gradient; last good checkpoint: {last}"
        )

    def _validate_if_due(self, reporter: Reporter, caught: Signals) -> None:
        """Validates every `validate_every` updates and after the last; a signal puts it off."""
        progress, config = self.progress, self.config
        is_due = progress.update % config.validate_every == 0
        is_due = is_due or progress.update >= config.num_updates
        if not is_due or progress.validated == progress.update:
            return
        started = time.monotonic()
        try:
            bleu, loss = self._bleu_and_loss(reporter, caught)
        except SignalCame:
            return
        progress.validated = progress.update
        progress.stale += 1
        if progress.update % config.validate_every == 0:  # one after the last update may not count
            progress.plateau = progress.plateau.after(bleu, config.decay_patience)
        if bleu > progress.best_bleu:
            progress.best_bleu, progress.best_update, progress.stale = bleu, progress.update, 0
            record = {"update": progress.update, "bleu": bleu}
            write_arrays(self.run_dir / BEST_NAME, self.model.weights, record)
        seconds = time.monotonic() - started
        progress.seconds = self._clock.seconds()
        progress.window.start_clock()
        reporter.log(
            "valid",
            progress.update,
            {
                "bleu": bleu,
                "loss": loss,
                "seconds": progress.seconds,
                "decoding_seconds": seconds,
            },
        )
        reporter.say(
            f"update {progress.update}: validation BLEU {bleu:.2f} ({seconds:.0f} s), "
            f"best {progress.best_bleu:.2f} at {progress.best_update}"
        )

    def _bleu_and_loss(self, reporter: Reporter, caught: Signals) -> tuple[float, float]:
        """Validation BLEU, and the loss in nats per target token, without label smoothing.

        Raises:
            SignalCame: if a signal came before all was decoded.
        """
        count = min(len(self.valid), self.config.valid_examples)
        sources = [np.asarray(self.valid.source[i]) for i in range(count)]
        targets = [np.asarray(self.valid.target[i]) for i in range(count)]
        with reporter.bar(2 * count, "validation") as bar:

            def on_batch(done: int) -> None:
                bar.update(done)
                caught.check()

            log_probs = self.scorer(sources, targets, VALIDATION_BATCH, on_batch)
            found = self.decoder(sources, VALIDATION_BATCH, on_batch)
        vocabulary = self.valid.target_vocabulary
        hypotheses = [vocabulary.decode(best[0].tokens) for best in found]
        references = self.valid.references(count)
        loss = -float(np.sum(log_probs)) / sum(len(target) + 1 for target in targets)
        bleu = VALIDATION_BLEU[self.config.validation_bleu]
        # As `evaluate` gives it.
        tokenised = map(self._form.tokenised, (hypotheses, references))
        return bleu(*tokenised).score, loss

    def _save(self) -> Path:
        path = self.folder.save(self.progress.update, self.variables, self.progress.to_dict())
        self._checkpoints = self.folder.paths()
        return path


def _check_vocabularies(run_dir: Path, data_dir: Path) -> None:
    """Refuses weights of other vocabularies: of the same sizes, they would fit."""
    theirs, ours = read_manifest(run_dir, check_files=False), read_manifest(data_dir)
    for side in ("source_vocabulary", "target_vocabulary"):
        if getattr(theirs, side) != getattr(ours, side):
            raise ValueError(
                f"{run_dir}: expected a run with the vocabularies of {data_dir}; its {side} is "
                "another one"
            )


def _width_step(data_dir: Path, config: TrainingConfig) -> int:
    """What widths are multiples of where XLA compiles for each, for seconds: there must be few.

    Not where a batch's tokens are limited, padding included, by the width of its bucket.
    """
    split = read_manifest(data_dir).split("train")
    longest = max(split.max_source_length, split.max_target_length)
    step = -(-longest // MOST_WIDTHS)
    return step if step > config.bucket_width and not config.batch_tokens else 1

"""The training loop: updates, validation, checkpoints, stopping."""

import math
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import keras

from seq2seq_memattn.config import DevicesConfig, ModelConfig, TrainingConfig
from seq2seq_memattn.runs.checkpoints import read_record, write_arrays
from seq2seq_memattn.runs.directory import BEST_NAME, training_lock
from seq2seq_memattn.training.measurements import Clock, UpdateResult, memory_mib
from seq2seq_memattn.training.profile import Profile
from seq2seq_memattn.training.reporting import Reporter, SilentReporter
from seq2seq_memattn.training.signals import SignalCame, Signals
from seq2seq_memattn.training.start import make_start
from seq2seq_memattn.training.updates.schedule import learning_rate
from seq2seq_memattn.training.validation import Validator


class InterruptedRun(Exception):
    """Raised when a signal ends the run, after a checkpoint was saved.

    Args:
        signal_number: int.
        path: the saved checkpoint; None if the chief, another process, saved it.
    """

    def __init__(self, signal_number: int, path: Path | None) -> None:
        name = signal.Signals(signal_number).name
        saved = f"saved {path}" if path else "the chief saved a checkpoint"
        super().__init__(f"{name}: {saved}; run the same command again to resume")
        self.signal_number = signal_number


class TrainingResult(NamedTuple):
    """The figures of a finished run.

    Fields:
        update: int. Updates done.
        loss: float. Mean loss in nats per target token over the updates since the last line of the
            log or, if there are none, the mean loss of that line; None if no update was applied.
        best_bleu: float. Best validation BLEU, 0 to 100; -1 if never validated.
        best_update: int. The update of the best validation.
        seconds: float. Seconds of training over all starts of the run, validation included.
        skipped: int. Updates skipped because of NaN or infinity.
        reason: why the run ended: "updates", "bleu" or "patience".
    """

    update: int
    loss: float | None
    best_bleu: float
    best_update: int
    seconds: float
    skipped: int
    reason: str


class Trainer:
    """Trains one model in one run directory; starts a new run or resumes an existing one.

    Args:
        run_dir: Path. Created if necessary. It must not hold a run with another configuration.
        data_dir: Path. A data directory with the splits train and valid.
        model_config: `ModelConfig` with the vocabulary sizes of the data.
        config: `TrainingConfig`.
        init_from: Path or None. Directory of another run, whose best weights initialise a new run.
            It is no longer read once the new run has a checkpoint.
        devices: `DevicesConfig`. If several processes train together, each makes a `Trainer` with
            the same arguments, except for `devices`. Only the first process writes, and only it
            needs access to `run_dir`. None: one device, however many the machine has.
        profile: the first and the last update to profile for TensorBoard; None: no profile.

    Raises:
        ValueError: if the run has another configuration, all its checkpoints are damaged, the
            weights or vocabularies of `init_from` do not fit the new run, or `devices` does not
            suit the machine or the cluster.
        LostWorker: if other processes do not start in time, or are lost.
        SystemExit: with 0, if this process only served the chief and the chief has ended.
    """

    def __init__(
        self,
        run_dir: Path,
        data_dir: Path,
        model_config: ModelConfig,
        config: TrainingConfig,
        init_from: Path | None = None,
        devices: DevicesConfig | None = None,
        profile: tuple[int, int] | None = None,
    ) -> None:
        devices = devices or DevicesConfig(strategy="one_device")
        start = make_start(run_dir, data_dir, model_config, config, init_from, devices)
        self.run_dir = run_dir
        self.config = config
        self.workers, self._num_workers = start.workers, start.num_workers
        self.train, self.valid = start.train, start.valid
        self.model, self.optimizer, self.updater = start.model, start.optimizer, start.updater
        self.folder, self._checkpoints = start.folder, start.checkpoints
        self.progress, self._notes = start.progress, start.notes
        self.variables = [*self.model.variables, *self.optimizer.variables]
        self._finish = self.updater.finish
        # Decoding cannot use weights that parameter servers hold: validations copy them here.
        self._local_model = start.local_model
        self.validator = Validator(self._local_model, self.valid, config, self.workers)
        first, last = profile if profile and self.workers.is_chief else (1, 0)
        self._profile = Profile(run_dir / "tensorboard", first, last)
        if first <= last <= self.progress.update:
            self._notes.append(f"no profile: updates {first} to {last} have already been done")
        elif config.num_updates < first <= last:
            self._notes.append(f"no profile: the run ends before update {first}")
        self._signal = 0  # the signal that the processes have agreed on; 0: none

    def run(self) -> TrainingResult:
        """Trains until the run ends.

        Raises:
            InterruptedRun: after SIGTERM or SIGINT; a checkpoint was written.
            KeyboardInterrupt: after a second SIGINT; no checkpoint was written.
            ValueError: if loss or gradient was not finite in `max_nan_updates` updates in a row,
                another process is training the run, or another process has trained the run since
                this trainer read it.
            LostWorker: if another process of the training was lost.
        """
        with self.workers.named_losses():
            if not self.workers.is_chief:
                return self._run(SilentReporter())
            with training_lock(self.run_dir):
                if self.folder.paths() != self._checkpoints:
                    raise ValueError(
                        f"{self.run_dir}: another process has trained this run since it was read; "
                        "start again to resume from its last checkpoint"
                    )
                done, validated = self.progress.update, self.progress.validated
                reporter = Reporter(self.run_dir, done, self.config.num_updates, validated)
                return self._run(reporter)

    def _run(self, reporter: Any) -> TrainingResult:
        progress = self.progress
        for note in self._notes:
            reporter.say(note)
        caught = Signals()
        try:
            reason, loss = self._updates(reporter, caught)
            self.workers.wait_for_all()
        finally:
            caught.restore()
            try:
                reporter.close()
            finally:
                self._profile.stop()
        return TrainingResult(
            progress.update,
            loss if math.isfinite(loss) else None,
            progress.best_bleu,
            progress.best_update,
            progress.seconds,
            progress.skipped,
            reason,
        )

    def _updates(self, reporter: Any, caught: Signals) -> tuple[str, float]:
        progress, config = self.progress, self.config
        self._clock = Clock(progress.seconds)
        progress.window.start_clock()
        self._in_a_row = 0
        self._last_taken = progress.update  # results may arrive a few updates late, but in order
        saved, saved_at = (progress.update, progress.validated), time.monotonic()
        self._kept_bleu = self._bleu_of_best(reporter)
        self._write_best()  # an earlier start may have been killed before it wrote best.npz
        batches = self._batches()
        while True:
            self._hear_of_signals(caught)
            self._validate_if_due(reporter, caught)
            reason = self._reason()
            now = (progress.update, progress.validated)
            is_due = time.monotonic() - saved_at > 60.0 * config.checkpoint_minutes
            is_due = is_due or self._is_best()
            if self._signal or (now != saved and (is_due or reason)):
                path = self._save(reporter)
                saved, saved_at = now, time.monotonic()
                if self._signal and not reason:
                    self.workers.wait_for_all()
                    raise InterruptedRun(self._signal, path)
            if reason:
                return reason, progress.window.loss
            asked = time.monotonic()
            batch = next(batches)
            progress.window.add_wait(time.monotonic() - asked)
            self._update(batch, reporter)

    def _hear_of_signals(self, caught: Signals) -> None:
        """Agrees with the other processes on a signal, so that all stop at the same update.

        A signal that arrives later counts at the next call.
        """
        self._signal = self.workers.largest(caught.number)

    def _update(self, batch: Any, reporter: Any) -> None:
        progress, window = self.progress, self.progress.window
        rate = learning_rate(self.config, progress.update, progress.plateau.decays)
        self._profile.before_update(progress.update + 1)
        scale = progress.loss_scale.value

        def update() -> Any:
            if self.config.has_schedule:
                self.optimizer.learning_rate = rate
            return self.updater(batch, scale)

        result = self.workers.served(update)
        progress.update += 1
        progress.position = self.train.position_after(progress.position, 1)
        progress.seconds = self._clock.seconds()
        if result is not None:
            self._take(result, reporter)
        self._profile.after_update(progress.update)
        reporter.count_update(window.glance(self._num_workers))
        if progress.update % self.config.log_every == 0:
            figures = {
                **window.take(self._num_workers),
                "learning_rate": rate,
                "memory_mib": memory_mib(),
                "seconds": progress.seconds,
                "seconds_left": reporter.seconds_left,
                "skipped": progress.skipped,
            }
            reporter.log("train", progress.update, figures)

    def _take(self, result: UpdateResult, reporter: Any) -> None:
        """Counts the result of an update.

        Raises:
            ValueError: if too many updates in a row were not finite.
        """
        progress = self.progress
        scale = progress.loss_scale
        progress.loss_scale = scale.after(result.is_applied)
        progress.window.add(result)
        self._last_taken += 1
        if result.is_applied:
            self._in_a_row = 0
            return
        progress.skipped += 1
        why = f"loss {result.loss}, gradient norm {result.gradient_norm}"
        if scale.may_fall:
            why += f"; the loss is scaled by {progress.loss_scale.value:g} from now on"
        reporter.say(f"update {self._last_taken} skipped: {why}")
        self._in_a_row += not scale.may_fall
        if self._in_a_row >= self.config.max_nan_updates:
            raise ValueError(self._hopeless(self._in_a_row))

    def _batches(self) -> Iterator[Any]:
        if keras.backend.backend() == "tensorflow":
            return self.train.tf_batches(self.progress.position)
        return (batch for batch, _ in self.train.numpy_batches(self.progress.position))

    def _reason(self) -> str | None:
        """The reason why the run is over, or None."""
        progress, config = self.progress, self.config
        if progress.best_bleu >= config.stop_at_bleu:
            return "bleu"
        if config.patience and progress.stale >= config.patience:
            return "patience"
        is_over = progress.update >= config.num_updates and progress.validated == progress.update
        return "updates" if is_over else None

    def _hopeless(self, in_a_row: int) -> str:
        last = self.folder.last_whole or (
            "none" if self.workers.is_chief else "see the chief's error"
        )
        return (
            f"{in_a_row} updates in a row up to update {self._last_taken} had NaN or infinite "
            f"loss or gradient; last good checkpoint: {last}"
        )

    def _validate_if_due(self, reporter: Any, caught: Signals) -> None:
        """Validates every `validate_every` updates and after the last one.

        A signal cancels a validation.
        """
        progress, config = self.progress, self.config
        is_due = progress.update % config.validate_every == 0
        is_due = is_due or progress.update >= config.num_updates
        if not is_due or progress.validated == progress.update:
            return
        self._settle(reporter)
        started = time.monotonic()
        try:
            bleu, loss = self._bleu_and_loss(reporter, caught)
        except SignalCame:
            return
        progress.validated = progress.update
        if progress.update % config.validate_every == 0:  # the last validation may be irregular
            progress.stale += 1
            progress.plateau = progress.plateau.after(bleu, config.decay_patience)
        # A model that begins to learn still has BLEU 0, but its loss falls.
        is_better = (bleu, -loss) > (progress.best_bleu, -progress.best_loss)
        if is_better and math.isfinite(loss):  # NaN weights are never the best
            progress.best_bleu, progress.best_loss = bleu, loss
            progress.best_update, progress.stale = progress.update, 0
        seconds = time.monotonic() - started
        slots = self.validator.slots()
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
                **slots,
            },
        )
        reporter.say(
            f"update {progress.update}: validation BLEU {bleu:.2f} ({seconds:.0f} s), "
            f"best {progress.best_bleu:.2f} at {progress.best_update}"
        )

    def _bleu_and_loss(self, reporter: Any, caught: Signals) -> tuple[float, float]:
        """Validation BLEU and loss; see `Validator`.

        Raises:
            SignalCame: if any process caught a signal before all sentences were decoded.
        """
        with reporter.bar(2 * self.validator.num_sentences, "validation") as bar:

            def on_decoded(done: int) -> None:
                bar.update(done)
                self._hear_of_signals(caught)
                if self._signal:
                    raise SignalCame

            def on_scored(done: int) -> None:
                if len(self.workers) == 1:
                    on_decoded(done)
                else:
                    # Workers score different numbers of batches, but must call `_hear_of_signals`
                    # equally often: they agree on signals after scoring.
                    bar.update(done)

            if self._local_model is not self.model:
                weights = self.workers.served(self.model.get_weights)
                self._local_model.set_weights(weights)
            return self.validator(on_scored, on_decoded)

    def _settle(self, reporter: Any) -> None:
        """Waits for the updates that workers are still computing, and counts their results."""
        for result in self.workers.served(self._finish):
            self._take(result, reporter)

    def _save(self, reporter: Any) -> Path | None:
        self._settle(reporter)
        if not self.workers.is_chief:
            return None
        record = self.progress.to_dict()
        path: Path = self.workers.served(
            lambda: self.folder.save(self.progress.update, self.variables, record)
        )
        self._checkpoints = self.folder.paths()
        self._write_best()
        return path

    def _is_best(self) -> bool:
        """Whether the weights are those of the best validation."""
        return 0 < self.progress.best_update == self.progress.update

    def _bleu_of_best(self, reporter: Any) -> float:
        """The validation BLEU of an earlier start's best.npz; -1 if there is none."""
        kept = read_record(self.run_dir / BEST_NAME) if self.workers.is_chief else {}
        bleu: float = kept.get("bleu", -1.0)
        if bleu > self.progress.best_bleu:
            reporter.say(
                f"{BEST_NAME} is better than the remaining checkpoints: BLEU {bleu:.2f} at "
                f"update {kept['update']}; it is kept until a validation is at least as good"
            )
        return bleu

    def _write_best(self) -> None:
        """Writes best.npz if the model now has the best weights.

        A checkpoint with the score of these weights must be written first. Otherwise a killed run
        would resume from an older checkpoint without this score. If checkpoints were lost, an
        existing best.npz may hold better weights than the model; it is then kept.
        """
        if self.workers.is_chief and self._is_best():
            record = {"update": self.progress.update, "bleu": self.progress.best_bleu}
            if record["bleu"] >= self._kept_bleu:
                path, weights = self.run_dir / BEST_NAME, self.model.weights
                self.workers.served(lambda: write_arrays(path, weights, record))

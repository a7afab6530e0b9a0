"""Reports the progress of a training: a progress bar, JSON lines and TensorBoard."""

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
from tqdm import tqdm

from seq2seq_memattn.compute.file_errors import as_os_errors
from seq2seq_memattn.notes import STANDARD_ERROR, print_note
from seq2seq_memattn.text.files import naming_errors, open_output
from seq2seq_memattn.training.measurements import memory_mib


class Reporter:
    """Progress bar, metrics.jsonl and TensorBoard scalars of one start of a run.

    Args:
        run_dir: Path.
        update: int. The update from which the run resumes; figures of later updates, left by an
            interrupted start, are removed.
        num_updates: int. The last update of the run.
        validated: int. The last update whose validation the checkpoint includes; the figures of
            later validations are removed. By default `update`.
    """

    def __init__(
        self, run_dir: Path, update: int, num_updates: int, validated: int | None = None
    ) -> None:
        self._path = run_dir / "metrics.jsonl"
        _drop_after(self._path, update, update if validated is None else validated)
        self._stream = open(self._path, "a", encoding="utf-8")  # noqa: SIM115 - closed in close
        self._board = _Board(run_dir / "tensorboard", update) if _has_tensorflow() else None
        # Updates are counted here too, because a bar hidden by TQDM_DISABLE does not count.
        self._first = self._update = update
        self._num_updates = num_updates
        self._begun = time.monotonic()
        self._bar = tqdm(
            total=num_updates,
            initial=update,
            unit="update",
            file=STANDARD_ERROR,
            dynamic_ncols=True,
            mininterval=1.0,
        )

    def count_update(self, figures: Mapping[str, float]) -> None:
        """Moves the bar by one update and shows the figures of `Window.glance`."""
        self._update += 1
        speed, share = figures["tokens_per_second"], figures["tokens_per_second_per_worker"]
        each = f" ({share:,.0f} a worker)" if share < speed else ""
        self._bar.set_postfix_str(
            f"loss {figures['loss']:.4f}, norm {figures['gradient_norm']:.2f}, "
            f"{speed:,.0f} tokens/s{each}, {figures['waiting']:.1%} waiting, "
            f"{memory_mib():,.0f} MiB",
            refresh=False,
        )
        self._bar.update()

    @property
    def seconds_left(self) -> float:
        """Seconds to the end, at the mean speed since this process started; NaN at first."""
        if self._update == self._first:
            return float("nan")
        elapsed = time.monotonic() - self._begun
        return (self._num_updates - self._update) * elapsed / (self._update - self._first)

    def log(self, kind: str, update: int, figures: dict[str, float]) -> None:
        """Writes the figures of an update ("train") or of a validation ("valid")."""
        rounded = {name: _number(value) for name, value in figures.items()}
        line = {"kind": kind, "update": update, **rounded}
        with naming_errors(str(self._path)):
            print(json.dumps(line), file=self._stream, flush=True)
        if self._board is not None:
            self._board.write({f"{kind}/{name}": value for name, value in figures.items()}, update)

    def say(self, message: str) -> None:
        """Prints a line above the bar."""
        print_note(message)

    def bar(self, total: int, what: str) -> Any:
        """Returns a second bar, for a part of the work such as a validation."""
        return tqdm(
            total=total,
            desc=what,
            unit="sentence",
            file=STANDARD_ERROR,
            leave=False,
            dynamic_ncols=True,
            mininterval=1.0,
        )

    def close(self) -> None:
        """Closes the bar and the files."""
        self._bar.close()
        try:
            with naming_errors(str(self._path)):
                self._stream.close()  # writes what a full disk has refused once more
        finally:
            if self._board is not None:
                self._board.close()


class SilentReporter:
    """A `Reporter` that reports nothing, for processes other than the chief."""

    seconds_left = float("nan")

    def count_update(self, figures: Mapping[str, float]) -> None:
        """Does nothing."""

    def log(self, kind: str, update: int, figures: dict[str, float]) -> None:
        """Does nothing."""

    def say(self, message: str) -> None:
        """Does nothing: the chief prints the message."""

    def bar(self, total: int, what: str) -> Any:
        """Returns a bar that is not shown."""
        return tqdm(total=total, desc=what, disable=True)

    def close(self) -> None:
        """Does nothing."""


class _Board:
    """Writes scalars for TensorBoard.

    Args:
        folder: Path.
        update: int. The update from which the run resumes; TensorBoard drops later figures.
    """

    def __init__(self, folder: Path, update: int) -> None:
        import tensorflow as tf

        self._tf = tf
        self._folder = folder
        with as_os_errors(self._folder):
            _say_start(folder, update)
            self._writer = tf.summary.create_file_writer(str(folder))

    def write(self, figures: dict[str, float], update: int) -> None:
        with as_os_errors(self._folder), self._writer.as_default(step=update):
            for name, value in figures.items():
                self._tf.summary.scalar(name, value)
            self._writer.flush()

    def close(self) -> None:
        with as_os_errors(self._folder):
            self._writer.close()


def _say_start(folder: Path, update: int) -> None:
    """Writes the event by which TensorBoard recognises a start of the run.

    At each such event except the first, TensorBoard drops the figures of later updates, which an
    interrupted start left behind. The first start must therefore write an event, too.
    """
    from tensorboard.compat.proto.event_pb2 import (  # type: ignore[import-untyped]
        Event,
        SessionLog,
    )
    from tensorboard.summary.writer.event_file_writer import (  # type: ignore[import-untyped]
        EventFileWriter,
    )

    writer = EventFileWriter(str(folder), filename_suffix=".start")
    log = SessionLog(status=SessionLog.START)
    writer.add_event(Event(wall_time=time.time(), step=update + 1, session_log=log))
    writer.close()


def _has_tensorflow() -> bool:
    """Whether figures are written for TensorBoard, which needs TensorFlow; on JAX, they are not."""
    return keras.backend.backend() == "tensorflow"


def _number(value: float) -> float | None:
    """Rounds to nine digits, which identify any float32; returns None for NaN and infinity."""
    return float(f"{value:.9g}") if math.isfinite(value) else None


def _drop_after(path: Path, update: int, validated: int) -> None:
    """Removes training lines after `update`, validations after `validated`, and damaged lines."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            record = json.loads(line)
            if record["update"] <= (validated if record["kind"] == "valid" else update):
                kept.append(line)
        except (ValueError, KeyError, TypeError):
            continue
    with open_output(path) as stream:
        stream.writelines(f"{line}\n" for line in kept)

"""Profiles a range of updates for TensorBoard."""

from pathlib import Path

import keras

from seq2seq_memattn.compute.file_errors import as_os_errors


class Profile:
    """Records a profile of a range of updates.

    Args:
        folder: folder for the profile, where TensorBoard finds it.
        first, last: int. The first and the last update to record; none if `first` > `last`.
    """

    def __init__(self, folder: Path, first: int = 1, last: int = 0) -> None:
        self._folder = folder
        self._first, self._last = first, last
        self._is_on = False

    def before_update(self, update: int) -> None:
        """Call it before each update with the update's number, counted from 1."""
        if not self._is_on and self._first <= update <= self._last:
            self._start()
            self._is_on = True

    def after_update(self, update: int) -> None:
        """Call it after each update with the update's number."""
        if update >= self._last:
            self.stop()

    def stop(self) -> None:
        """Ends the recording, if one is running, and writes it."""
        if self._is_on:
            self._is_on = False
            self._end()

    def _start(self) -> None:
        if keras.backend.backend() == "jax":
            import jax

            jax.profiler.start_trace(str(self._folder))
            return
        import tensorflow as tf

        with as_os_errors(self._folder):
            tf.profiler.experimental.start(str(self._folder))

    def _end(self) -> None:
        if keras.backend.backend() == "jax":
            import jax

            jax.profiler.stop_trace()
            return
        import tensorflow as tf

        with as_os_errors(self._folder):
            tf.profiler.experimental.stop()

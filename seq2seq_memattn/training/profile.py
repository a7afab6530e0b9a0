"""TensorBoard's profile of some updates of a training."""

from pathlib import Path

import keras


class Profile:
    """Records what the machine does between two updates.

    Args:
        folder: where TensorBoard finds the profile.
        first, last: int. The first and the last update to record; `first` above `last`: none.
    """

    def __init__(self, folder: Path, first: int = 1, last: int = 0) -> None:
        self._folder = folder
        self._first, self._last = first, last
        self._is_on = False

    def before_update(self, update: int) -> None:
        """Called before each update with its number, from 1 on."""
        if not self._is_on and self._first <= update <= self._last:
            self._start()
            self._is_on = True

    def after_update(self, update: int) -> None:
        """Called after each update with its number."""
        if update >= self._last:
            self.stop()

    def stop(self) -> None:
        """Writes what was recorded, if anything."""
        if self._is_on:
            self._is_on = False
            self._end()

    def _start(self) -> None:
        if keras.backend.backend() == "jax":
            import jax

            jax.profiler.start_trace(str(self._folder))
            return
        import tensorflow as tf

        tf.profiler.experimental.start(str(self._folder))

    def _end(self) -> None:
        if keras.backend.backend() == "jax":
            import jax

            jax.profiler.stop_trace()
            return
        import tensorflow as tf

        tf.profiler.experimental.stop()

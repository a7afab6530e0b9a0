"""Errors of files that TensorFlow writes."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def as_os_errors(path: Path) -> Iterator[None]:
    """Turns TensorFlow's errors in a block that writes to `path` into OSError."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        raise OSError(None, error.message, str(path)) from error

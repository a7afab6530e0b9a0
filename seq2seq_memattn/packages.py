"""Optional packages, the extras that install them, and the versions of what is installed."""

import contextlib
import importlib.metadata
import importlib.util
import os
import platform
from collections.abc import Iterator

from seq2seq_memattn._version import __version__

NAME = "seq2seq_memattn"

EXTRAS = {
    "tensorflow": "tensorflow",
    "tensorflow_serving": "tensorflow",
    "tensorflow_text": "tensorflow",
    "tensorboard": "tensorflow",
    "jax": "jax",
    "sentencepiece": "text",
    "sacremoses": "text",
    "nltk": "text",
    "matplotlib": "plots",
    "h11": "serving",
    "prometheus_client": "serving",
    "starlette": "serving",
    "uvicorn": "serving",
}
BACKENDS = ("tensorflow", "jax")


def versions(*names: str) -> dict[str, str]:
    """Versions of Python, of this package, and of the named packages that are installed."""
    found = {"python": platform.python_version(), NAME: __version__}
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def is_extra(package: str | None) -> bool:
    """Whether one of our extras installs `package`, which an import did not find."""
    return _top(package) in EXTRAS


def what_to_install(package: str | None) -> str:
    """A one-line message that names the extra for a package that is not installed."""
    name = _top(package)
    if name in BACKENDS and not any(map(_is_installed, BACKENDS)):
        return (
            "Keras has no backend; install TensorFlow or JAX: "
            f"pip install '{NAME}[tensorflow]' or '{NAME}[jax]'"
        )
    return f"{name} is not installed: pip install '{NAME}[{EXTRAS[name]}]'"


@contextlib.contextmanager
def needed() -> Iterator[None]:
    """A `with` block in which the error of a failed import names the extra to install.

    Raises:
        ModuleNotFoundError: if a package that an extra installs is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if not is_extra(error.name):
            raise
        raise ModuleNotFoundError(what_to_install(error.name), name=error.name) from error


def choose_backend() -> None:
    """Makes JAX the backend of Keras if TensorFlow is not installed and no backend was chosen."""
    if _is_installed("jax") and not _is_installed("tensorflow"):
        os.environ.setdefault("KERAS_BACKEND", "jax")


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _top(package: str | None) -> str:
    return (package or "").partition(".")[0]

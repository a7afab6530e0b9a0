"""Recurrent sequence-to-sequence models with fixed-size-memory attention.

The public names are listed in `__init__.pyi`. Each is imported on first use, so preparing data or
reading a vocabulary does not load Keras. `keras.saving.load_model` finds the layers and losses once
one of them has been imported, for example by `from seq2seq_memattn import AttentionDecoder`;
`import seq2seq_memattn` alone registers them only if Keras was imported before.
"""

import importlib
import pkgutil
import sys
from pathlib import Path
from typing import Any

import lazy_loader

from seq2seq_memattn import packages as _packages

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    with _packages.needed():  # importing fails if, for example, Keras has no backend
        found = _load(name)
    _register()
    return found


def _register() -> None:
    """Registers the classes that saved models may contain, by importing their modules.

    Does nothing if Keras is not loaded, or if its backend is neither TensorFlow nor JAX.
    """
    keras = sys.modules.get("keras")
    if keras is None or keras.backend.backend() not in _packages.BACKENDS:
        return
    for folder in ("attention", "layers"):
        for module in pkgutil.iter_modules([str(Path(__file__).with_name(folder))]):
            importlib.import_module(f"{__name__}.{folder}.{module.name}")
    for name in ("losses", "model"):
        importlib.import_module(f"{__name__}.{name}")


_register()

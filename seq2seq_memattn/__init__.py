"""Recurrent sequence-to-sequence models with fixed-size-memory attention.

The public names are listed in `__init__.pyi`. Each is imported on first use, so preparing data or
reading a vocabulary does not load Keras. Once Keras is loaded, all layers and losses are
registered, because `keras.saving.load_model` looks them up by name.
"""

import importlib
import pkgutil
import sys
from pathlib import Path
from typing import Any

import lazy_loader

from seq2seq_memattn.packages import needed as _needed

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    with _needed():  # Keras without a backend
        found = _load(name)
    _register()
    return found


def _register() -> None:
    """Imports every module that registers a class of saved models, if Keras is loaded."""
    if "keras" not in sys.modules:
        return
    for folder in ("attention", "layers"):
        for module in pkgutil.iter_modules([str(Path(__file__).with_name(folder))]):
            importlib.import_module(f"{__name__}.{folder}.{module.name}")
    for name in ("losses", "model"):
        importlib.import_module(f"{__name__}.{name}")


_register()

"""Recurrent sequence-to-sequence models whose attention does not grow with the source.

The public names are listed in `__init__.pyi`. They are imported when first used: preparing data or
reading a vocabulary does not wait for Keras. Once Keras is there, so are all layers and losses, by
whose names `keras.saving.load_model` looks for them.
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
    """Imports every module that registers what a stored model may have, if Keras is there."""
    if "keras" not in sys.modules:
        return
    for folder in ("attention", "layers"):
        for module in pkgutil.iter_modules([str(Path(__file__).with_name(folder))]):
            importlib.import_module(f"{__name__}.{folder}.{module.name}")
    for name in ("losses", "model"):
        importlib.import_module(f"{__name__}.{name}")


_register()

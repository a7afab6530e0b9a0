"""Recurrent sequence-to-sequence models whose attention does not grow with the source.

The public names are listed in `__init__.pyi`. They are imported when first used: preparing data or
reading a vocabulary does not wait for Keras.
"""

from typing import Any

import lazy_loader

from seq2seq_memattn.packages import needed as _needed

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    with _needed():  # Keras without a backend
        return _load(name)

"""Recurrent sequence-to-sequence models whose attention does not grow with the source.

The public names are listed in `__init__.pyi`. They are imported when first used: preparing data or
reading a vocabulary does not wait for Keras.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

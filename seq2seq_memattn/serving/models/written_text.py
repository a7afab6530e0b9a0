"""Plain text for models whose training text was tokenised, truecased or lower-cased."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seq2seq_memattn.serving.models.signatures import Arrays
from seq2seq_memattn.text.form import TextForm

# Names of inputs and outputs of the signatures.
SOURCES, GIVEN, PREFIX, TRANSLATIONS = "text", "translation", "prefix", "translations"


class WrittenText:
    """Converts sources to the form of the training text, and translations back to plain text.

    The graph of a model has no Moses tokeniser. If a request has translations to be scored, both
    texts must already have the form of the training text, as for `memattn score`.

    Args:
        form: dict of a `TextForm`; {} if the training text was plain text.
        folder: folder with the truecase model, which is read once.

    Raises:
        ModuleNotFoundError: if the form needs a package that is not installed.
    """

    def __init__(self, form: Mapping[str, Any], folder: Path) -> None:
        self._form = TextForm.from_dict(dict(form))
        self._as_trained = self._form.source_converter(folder)
        self._form.readable([])  # a missing package is an error now, not at the first request

    def inputs(self, arrays: Arrays) -> Arrays:
        """Returns the inputs of a signature, with sources in the form of the training text."""
        if GIVEN in arrays:
            return arrays
        arrays = self._changed(arrays, PREFIX, self._form.beginnings_as_trained)
        return self._changed(arrays, SOURCES, self._as_trained)

    def outputs(self, arrays: Arrays) -> Arrays:
        """Returns the outputs of a signature, with translations as plain text."""
        return self._changed(arrays, TRANSLATIONS, self._form.readable)

    def _changed(
        self, arrays: Arrays, name: str, change: Callable[[Sequence[str]], list[str]]
    ) -> Arrays:
        if self._form.is_as_written or name not in arrays:
            return arrays
        texts = [text.decode("utf-8", "replace") for text in arrays[name].ravel()]
        changed = np.array([text.encode() for text in change(texts)], dtype=object)
        return {**arrays, name: changed.reshape(arrays[name].shape)}

"""Texts as people write them, for a model of text that was tokenised, truecased or lower-cased."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seq2seq_memattn.serving.models.signatures import Arrays
from seq2seq_memattn.text.form import TextForm

SOURCES, GIVEN, TRANSLATIONS = "text", "translation", "translations"  # of the signatures


class WrittenText:
    """Brings sources into the form of a model's training text, and translations out of it.

    The graph of a model has no tokeniser of Moses. Where translations are given, to be scored, both
    texts are taken as they are, in the form of the training text, as `memattn score` does.

    Args:
        form: dict of a `TextForm`; {} for text that is as people write it.
        folder: where the truecase model is.
    """

    def __init__(self, form: Mapping[str, Any], folder: Path) -> None:
        self._form = TextForm.from_dict(dict(form))
        self._folder = folder

    def inputs(self, arrays: Arrays) -> Arrays:
        """Inputs of a signature, with its sources as the model knows them."""
        if GIVEN in arrays:
            return arrays
        return self._changed(
            arrays, SOURCES, lambda texts: self._form.as_trained(texts, self._folder)
        )

    def outputs(self, arrays: Arrays) -> Arrays:
        """Outputs of a signature, with its translations as people write them."""
        return self._changed(arrays, TRANSLATIONS, self._form.readable)

    def _changed(
        self, arrays: Arrays, name: str, change: Callable[[Sequence[str]], list[str]]
    ) -> Arrays:
        if self._form.is_as_written or name not in arrays:
            return arrays
        texts = [text.decode("utf-8", "replace") for text in arrays[name].ravel()]
        changed = np.array([text.encode() for text in change(texts)], dtype=object)
        return {**arrays, name: changed.reshape(arrays[name].shape)}

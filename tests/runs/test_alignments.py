from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.runs.alignments import align
from seq2seq_memattn.runs.translator import Translation
from seq2seq_memattn.search.batch_decoder import Hypothesis


@pytest.mark.parametrize(
    ("hypothesis", "message"),
    [
        (None, "--text: expected a sentence, got nothing to translate"),
        (
            Hypothesis(np.zeros([0], np.int32), -np.inf, -np.inf, np.zeros([0, 4])),
            "--text: no translation fits the rules of the search",
        ),
    ],
)
def test_what_has_no_translation_is_not_aligned(
    hypothesis: Hypothesis | None, message: str
) -> None:
    def translator(*arguments: Any) -> list[list[Translation]]:
        return [[Translation("", hypothesis)]]

    with pytest.raises(ValueError, match=message):
        align(SimpleNamespace(), translator, "3 1 4")

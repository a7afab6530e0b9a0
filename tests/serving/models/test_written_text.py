from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.serving.models.written_text import WrittenText
from seq2seq_memattn.text.form import TextForm

MOSES = TextForm("en", "de", is_tokenised=True, splits_hyphens=True, is_truecased=True)


def arrays(**values: Any) -> dict[str, np.ndarray]:
    return {name: np.array(value, dtype=object) for name, value in values.items()}


def test_sources_are_brought_into_the_form_of_the_training_text() -> None:
    written = WrittenText(MOSES.to_dict(), Path())
    found = written.inputs(arrays(text=[b"It's well-known."]))
    assert found["text"].tolist() == [b"It &apos;s well @-@ known ."]


def test_both_texts_of_a_pair_to_score_stay_as_they_are() -> None:
    given = arrays(text=[b"well @-@ known"], translation=[b"A-B"])
    assert WrittenText(MOSES.to_dict(), Path()).inputs(given) is given


def test_translations_are_as_people_write_them() -> None:
    written = WrittenText(MOSES.to_dict(), Path())
    found = written.outputs(
        arrays(translations=[[b"das ist &quot; gut &quot; .", b""]], target_pieces=[["a ."]])
    )
    assert found["translations"].tolist() == [[b'Das ist "gut".', b""]]
    assert found["target_pieces"].tolist() == [["a ."]]


@pytest.mark.parametrize("form", [{}, TextForm("en", "de").to_dict()])
def test_text_that_is_as_people_write_it_stays_so(form: dict[str, Any]) -> None:
    given = arrays(text=[b"It's \xff"])
    assert WrittenText(form, Path()).inputs(given) is given


def test_no_texts_stay_none() -> None:
    given = {"text": np.zeros([0], dtype=object)}
    assert WrittenText(MOSES.to_dict(), Path()).inputs(given)["text"].shape == (0,)

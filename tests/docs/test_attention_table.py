"""In the guide's table, each class makes the same attention as the name beside it."""

import re
from typing import Any

import pytest

import seq2seq_memattn
from seq2seq_memattn.attention.registry import ATTENTION_NAMES, make_attention
from seq2seq_memattn.config import ModelConfig
from tests.documents import DOCS

SIZES = {"half_window": 3, "units": 5, "K": 4, "D": 5, "S": 9, "t": 1.5}
CONFIG: dict[str, Any] = {
    "half_window": 3,
    "attention_units": 5,
    "decoder_units": 5,
}


def rows() -> list[tuple[str, str]]:
    """The class with its arguments and the name in commands, of each row."""
    page = (DOCS / "layers.md").read_text()
    return re.findall(r"^\| `(\w+Attention(?:\(.*?\))?)` \| `([\w:]+)` \|", page, re.MULTILINE)


def test_every_attention_has_a_row() -> None:
    assert sorted(name for _, name in rows()) == sorted(ATTENTION_NAMES)


@pytest.mark.parametrize(("expression", "name"), rows())
def test_the_class_makes_what_the_command_makes(expression: str, name: str) -> None:
    classes = {each: getattr(seq2seq_memattn, each) for each in seq2seq_memattn.__all__}
    made = eval(expression, classes | SIZES)
    layer = made if not isinstance(made, type) else made()
    longest = 9 if "=S" in expression else 0
    threshold = SIZES["t"] if name == "flexible" else 0.0
    config = ModelConfig(
        attention=name.replace("K", "4"),
        max_source_length=longest,
        threshold=threshold,
        **CONFIG,
    )
    expected = make_attention(config)
    assert type(layer) is type(expected)
    assert {**layer.get_config(), "name": ""} == {**expected.get_config(), "name": ""}

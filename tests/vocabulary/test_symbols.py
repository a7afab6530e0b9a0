from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.vocabulary import (
    END_ID,
    PAD_ID,
    START_ID,
    SymbolVocabulary,
    vocabulary_from_dict,
)
from tests.running import run_python

DIGITS = SymbolVocabulary(map(str, range(20)))


def test_special_ids_are_fixed_and_symbols_follow_them() -> None:
    assert (PAD_ID, START_ID, END_ID) == (0, 1, 2)
    assert DIGITS.size == 23
    assert DIGITS.encode("0 19 7") == [3, 22, 10]


def test_decoding_undoes_encoding() -> None:
    assert DIGITS.decode(DIGITS.encode("0 19 7 7")) == "0 19 7 7"


def test_decoding_stops_at_the_end_token_and_skips_pad_and_start() -> None:
    ids = np.array([START_ID, 3, PAD_ID, 4, END_ID, 5, END_ID, 999], np.int32)
    assert DIGITS.decode(ids) == "0 1"


def test_an_empty_line_has_no_ids_and_comes_back() -> None:
    assert DIGITS.encode("") == []
    assert DIGITS.decode([END_ID, 5]) == ""
    assert DIGITS.decode([]) == ""


def test_repeated_spaces_separate_like_one() -> None:
    assert DIGITS.encode("  1   2 ") == DIGITS.encode("1 2")


@pytest.mark.parametrize("symbol", ["20", "2\r", "1\t2", "1\u00a02", "1\u20282"])
def test_an_unknown_symbol_is_named(symbol: str) -> None:
    with pytest.raises(ValueError, match="unknown symbol") as caught:
        DIGITS.encode(f"1 {symbol} 2")
    assert repr(symbol) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("token", [-1, 23, 1000])
def test_an_id_out_of_range_is_named(token: int) -> None:
    with pytest.raises(ValueError, match=rf"in \[0, 23\), got {token}"):
        DIGITS.decode([3, token, END_ID])


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        ([], "at least one"),
        (["a", "a"], "distinct"),
        (["a", ""], "non-empty ones without white space, got ''"),
        (["a b"], "white space"),
        (["a\n"], "white space"),
    ],
)
def test_unusable_symbols_are_refused(symbols: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SymbolVocabulary(symbols)


def test_a_vocabulary_is_rebuilt_from_its_dict(tmp_path: Path) -> None:
    again = vocabulary_from_dict(DIGITS.to_dict(), tmp_path)
    assert again.to_dict() == DIGITS.to_dict()
    assert again.encode("19 3") == DIGITS.encode("19 3")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"kind": "symbols"}, "symbols: expected a list of strings, got None"),
        ({"kind": "symbols", "symbols": "abc"}, "list of strings"),
        ({"kind": "symbols", "symbols": ["a", 1]}, "list of strings"),
    ],
)
def test_a_wrong_dict_is_refused(spec: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        vocabulary_from_dict(spec, tmp_path)


WITHOUT_FRAMEWORKS = """
import sys, types

package = types.ModuleType("seq2seq_memattn")  # stands for the package, whose own file needs Keras
package.__path__ = ["seq2seq_memattn"]
sys.modules["seq2seq_memattn"] = package
for name in ("tensorflow", "keras", "jax"):
    sys.modules[name] = None  # an import of it raises ImportError
import seq2seq_memattn.vocabulary
import seq2seq_memattn.data
import seq2seq_memattn.preparation.copy_task
import seq2seq_memattn.preparation.parallel_text
"""


def test_vocabulary_data_and_preparation_need_no_framework() -> None:
    process = run_python("-c", WITHOUT_FRAMEWORKS)
    assert process.returncode == 0, process.stderr.decode()

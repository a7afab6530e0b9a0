from pathlib import Path

import numpy as np
import pytest

from seq2seq_memattn.data.sequences import TokenSequences, read_sequences
from seq2seq_memattn.vocabulary import SymbolVocabulary

LISTS = [[3, 4, 5], [], [6], []]


def test_sequences_come_back_one_by_one() -> None:
    sequences = TokenSequences.from_lists(iter(LISTS))
    assert [sequence.tolist() for sequence in sequences] == LISTS
    assert sequences.lengths.tolist() == [3, 0, 1, 0]
    assert len(sequences) == 4
    assert sequences[0].dtype == np.int32


def test_no_sequences_are_allowed() -> None:
    assert list(TokenSequences.from_lists([])) == []


@pytest.mark.parametrize("index", [-1, 4])
def test_an_index_out_of_range_is_an_error(index: int) -> None:
    with pytest.raises(IndexError, match=rf"\[0, 4\), got {index}"):
        TokenSequences.from_lists(LISTS)[index]


def test_lengths_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(ValueError, match="sum of 3, got 4"):
        TokenSequences(np.zeros(3, np.int32), np.array([1, 3]))


def test_a_line_outside_of_the_vocabulary_is_named_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("a b\n\nb c\n")
    with pytest.raises(ValueError, match="text: line 3: unknown symbol 'c'"):
        read_sequences(str(path), SymbolVocabulary("ab"))

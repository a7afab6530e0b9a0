import contextlib
from pathlib import Path

import numpy as np
import pytest

from seq2seq_memattn.preparation import duplicates
from seq2seq_memattn.preparation.duplicates import DuplicateFinder


def found(directory: Path, pairs: list[tuple[bytes, bytes]]) -> list[int]:
    with contextlib.closing(DuplicateFinder(directory)) as finder:
        for pair in pairs:
            finder.add(*pair)
        return np.fromfile(finder.find(), np.uint8)[: len(pairs)].tolist()


def test_all_but_the_first_of_equal_pairs_are_duplicates(tmp_path: Path) -> None:
    pairs = [(b"a", b"b"), (b"a", b"c"), (b"a", b"b"), (b"b", b"a"), (b"a", b"b"), (b"a", b"c")]
    assert found(tmp_path, pairs) == [0, 0, 1, 0, 1, 1]


def test_the_line_break_between_the_sides_counts(tmp_path: Path) -> None:
    assert found(tmp_path, [(b"a b", b"c"), (b"a", b"b c"), (b"", b"a b c")]) == [0, 0, 0]


def test_no_pairs_have_no_duplicates(tmp_path: Path) -> None:
    assert found(tmp_path, []) == []


def test_many_passes_and_buffers_find_what_a_set_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("BUFFERED_HASHES", 64), ("HASHES_AT_A_TIME", 500), ("READ_HASHES", 300)):
        monkeypatch.setattr(duplicates, name, value)
    numbers = np.random.default_rng(1).integers(0, 2000, (3210, 2)) // [1, 500]
    pairs = [(b"%d" % source, b"%d" % target) for source, target in numbers]
    seen: set[tuple[bytes, bytes]] = set()
    expected = []
    for pair in pairs:
        expected.append(int(pair in seen))
        seen.add(pair)
    assert 0 < sum(expected) < len(pairs)
    assert found(tmp_path, pairs) == expected


def test_the_hashes_are_gone_afterwards(tmp_path: Path) -> None:
    found(tmp_path, [(b"a", b"b")])
    assert [path.name for path in tmp_path.iterdir()] == ["duplicates"]

from pathlib import Path

import numpy as np
import pytest

from seq2seq_memattn.data.batching import make_batch
from seq2seq_memattn.data.manifest import DataFile, describe_file
from seq2seq_memattn.data.pairs import TokenPairs, read_pairs
from seq2seq_memattn.data.records import id_dtype, pack_records
from seq2seq_memattn.vocabulary import END_ID

DTYPE = id_dtype(100)
PAIRS = [([5, 6, 7], [8]), ([], [9, 10]), ([11], []), ([12, 13], [14, 15, 16, 17])]


def tokens(pairs: list[tuple[list[int], list[int]]]) -> TokenPairs:
    return TokenPairs(flat(pairs))


def flat(pairs: list[tuple[list[int], list[int]]]) -> np.ndarray:
    return np.array([i for s, t in pairs for i in [*s, END_ID, *t, END_ID]], DTYPE)


def shard(directory: Path, name: str, pairs: list[tuple[list[int], list[int]]]) -> DataFile:
    (directory / name).write_bytes(pack_records(flat(pairs)))
    return describe_file(directory, name, "examples")


def test_pairs_come_apart_again() -> None:
    pairs = tokens(PAIRS)
    assert len(pairs) == 4
    assert pairs.source_lengths.tolist() == [4, 1, 2, 3]
    assert pairs.target_lengths.tolist() == [2, 3, 1, 5]
    for i, (source, target) in enumerate(PAIRS):
        assert pairs.source(i).tolist() == source
        assert pairs.target(i).tolist() == target
    assert pairs.source(0).dtype == np.int32


@pytest.mark.parametrize("indices", [[0], [2, 0, 3], [1, 1], [3, 2, 1, 0]])
def test_a_batch_is_what_make_batch_describes(indices: list[int]) -> None:
    sources = [np.array(PAIRS[i][0], np.int32) for i in indices]
    targets = [np.array(PAIRS[i][1], np.int32) for i in indices]
    expected = make_batch(sources, targets, 6, 7)
    found = tokens(PAIRS).batch(np.array(indices), 6, 7)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == np.int32
        np.testing.assert_array_equal(found[name], array)


def test_shards_are_read_one_after_the_other(tmp_path: Path) -> None:
    files = [shard(tmp_path, "a", PAIRS[:1]), shard(tmp_path, "b", PAIRS[1:])]
    pairs = read_pairs(tmp_path, files, DTYPE)
    assert [pairs.target(i).tolist() for i in range(4)] == [target for _, target in PAIRS]


def test_a_changed_or_missing_shard_is_named(tmp_path: Path) -> None:
    file = shard(tmp_path, "a", PAIRS)
    content = bytearray((tmp_path / "a").read_bytes())
    content[14] ^= 1
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match="a: changed since it was prepared"):
        read_pairs(tmp_path, [file], DTYPE)


def test_a_file_that_is_no_shard_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text")
    with pytest.raises(ValueError, match="a: expected whole records"):
        read_pairs(tmp_path, [describe_file(tmp_path, "a", "examples")], DTYPE)

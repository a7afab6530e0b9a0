from pathlib import Path

import numpy as np
import pytest

from seq2seq_memattn.data.manifest import DataFile, describe_file
from seq2seq_memattn.data.pairs import TokenPairs, id_dtype, read_shards
from seq2seq_memattn.vocabulary import END_ID
from tests.data.directories import LINES, make_directory, open_lines

DTYPE = id_dtype(100)
PAIRS = [([5, 6, 7], [8]), ([], [9, 10]), ([11], []), ([12, 13], [14, 15, 16, 17])]


def flat(pairs: list[tuple[list[int], list[int]]]) -> np.ndarray:
    return np.array([i for s, t in pairs for i in [*s, END_ID, *t, END_ID]], DTYPE)


def shard(directory: Path, name: str, pairs: list[tuple[list[int], list[int]]]) -> DataFile:
    np.save(directory / name, flat(pairs))
    return describe_file(directory, name, "examples")


def test_pairs_come_apart_again() -> None:
    pairs = TokenPairs(flat(PAIRS))
    assert len(pairs) == 4
    assert pairs.lengths.tolist() == [[4, 2], [1, 3], [2, 1], [3, 5]]
    for i, (source, target) in enumerate(PAIRS):
        assert pairs.source(i).tolist() == source
        assert pairs.target(i).tolist() == target
    assert pairs.source(0).dtype == np.int32


def test_shards_are_read_one_after_the_other(tmp_path: Path) -> None:
    files = [shard(tmp_path, "a.npy", PAIRS[:1]), shard(tmp_path, "b.npy", PAIRS[1:])]
    pairs = read_shards(tmp_path, files, DTYPE)
    assert [pairs.target(i).tolist() for i in range(4)] == [target for _, target in PAIRS]


def test_a_changed_or_missing_shard_is_named(tmp_path: Path) -> None:
    file = shard(tmp_path, "a.npy", PAIRS)
    content = bytearray((tmp_path / "a.npy").read_bytes())
    content[-1] ^= 1
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.npy: changed since it was prepared"):
        read_shards(tmp_path, [file], DTYPE)
    (tmp_path / "a.npy").unlink()
    with pytest.raises(ValueError, match=r"a\.npy: no such file"):
        read_shards(tmp_path, [file], DTYPE)


@pytest.mark.parametrize(
    "tokens",
    [
        flat(PAIRS).astype(np.int32),  # of larger vocabularies
        flat(PAIRS)[None],
        flat(PAIRS)[:-1],
        flat([([5], [6])])[:2],  # a source without a target
        flat([]),
        np.array([{}]),  # a pickle
    ],
    ids=["dtype", "axes", "cut", "odd", "empty", "pickle"],
)
def test_an_array_that_is_no_shard_is_named(tmp_path: Path, tokens: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", tokens)
    with pytest.raises(ValueError, match=r"a\.npy: expected pairs of uint16 ids"):
        read_shards(tmp_path, [describe_file(tmp_path, "a.npy", "examples")], DTYPE)


@pytest.mark.parametrize("content", [b"", b"text", b"\x93NUMPY\x01"])
def test_a_file_that_is_no_array_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.npy: expected pairs of uint16 ids"):
        read_shards(tmp_path, [describe_file(tmp_path, "a.npy", "examples")], DTYPE)


def test_ids_are_as_narrow_as_both_vocabularies_allow() -> None:
    assert (id_dtype(65_536).name, id_dtype(10, 65_537).name) == ("uint16", "int32")


def test_lines_of_text_are_pairs_too(tmp_path: Path) -> None:
    data = open_lines(make_directory(tmp_path))
    assert len(data) == len(data.pairs) == len(LINES)
    assert [data.source_vocabulary.decode(ids) for ids in data.source] == LINES
    assert [data.target_vocabulary.decode(ids) for ids in data.target] == LINES
    assert data.references(3) == LINES[:3]
    path = tmp_path / "target.txt"
    path.write_bytes(path.read_bytes().replace(b"a", b"b"))  # of the same size
    with pytest.raises(ValueError, match=f"{path}"):
        data.references(3)


def test_a_bad_line_is_named_with_file_and_line(tmp_path: Path) -> None:
    make_directory(tmp_path, ["a", "b"], ["a", "x b"])
    with pytest.raises(ValueError, match="target.txt: line 2: unknown symbol 'x'"):
        open_lines(tmp_path)


def test_bytes_that_are_not_utf8_are_located(tmp_path: Path) -> None:
    make_directory(tmp_path, ["a", "b"], ["a", "b"])
    (tmp_path / "source.txt").write_bytes(b"a\n\xff\n")  # the same size
    with pytest.raises(ValueError, match="source.txt: line 2: expected UTF-8"):
        open_lines(tmp_path)


def test_an_empty_split_is_an_error(tmp_path: Path) -> None:
    make_directory(tmp_path, [], [])
    with pytest.raises(ValueError, match="source.txt: expected lines of text, got an empty file"):
        open_lines(tmp_path)


@pytest.mark.parametrize("target", [["a", "b"], ["a", "b", "c", "a"]])
def test_sides_of_different_line_counts_are_an_error_with_both_counts(
    target: list[str], tmp_path: Path
) -> None:
    make_directory(tmp_path, ["a", "b", "c"], target)
    with pytest.raises(ValueError, match=f"target.txt: expected 3 lines, got {len(target)}"):
        open_lines(tmp_path)


def test_a_file_that_was_changed_is_an_error(tmp_path: Path) -> None:
    make_directory(tmp_path)
    path = tmp_path / "source.txt"
    path.write_text(path.read_text().replace("c b", "b c"))
    with pytest.raises(ValueError, match="source.txt: changed since it was prepared"):
        open_lines(tmp_path)


def test_several_files_of_one_side_are_an_error(tmp_path: Path) -> None:
    make_directory(tmp_path)
    files = tuple(describe_file(tmp_path, f"{role}.txt", "source") for role in ("source", "target"))
    make_directory(tmp_path, files=files)
    with pytest.raises(ValueError, match="expected one source file in a split, got 2"):
        open_lines(tmp_path)

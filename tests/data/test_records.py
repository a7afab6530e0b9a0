from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf

from seq2seq_memattn.data.records import id_dtype, pack_records, unpack_records
from seq2seq_memattn.vocabulary import END_ID

SMALL, LARGE = id_dtype(65_536), id_dtype(10, 65_537)


def tokens_of(
    pairs: list[tuple[list[int], list[int]]], dtype: np.dtype[np.integer]
) -> npt.NDArray[np.integer]:
    ids = [i for source, target in pairs for i in [*source, END_ID, *target, END_ID]]
    return np.array(ids, dtype)


def random_tokens(
    dtype: np.dtype[np.integer], num_pairs: int = 700, largest: int = 65_535
) -> npt.NDArray[np.integer]:
    generator = np.random.default_rng(5)
    lengths = generator.integers(1, 40, 2 * num_pairs)
    tokens = generator.integers(3, largest, lengths.sum(), endpoint=True)
    tokens[np.cumsum(lengths) - 1] = END_ID
    return tokens.astype(dtype)


def test_ids_are_as_narrow_as_both_vocabularies_allow() -> None:
    assert (SMALL.name, LARGE.name) == ("uint16", "int32")


@pytest.mark.parametrize("dtype", [SMALL, LARGE], ids=str)
def test_what_was_packed_is_unpacked(dtype: np.dtype[np.integer]) -> None:
    tokens = random_tokens(dtype, largest=65_535 if dtype == SMALL else 1_000_000)
    again = unpack_records(pack_records(tokens), dtype)
    assert again.dtype == dtype
    np.testing.assert_array_equal(again, tokens)


@pytest.mark.parametrize("dtype", [SMALL, LARGE], ids=str)
def test_tensorflow_reads_the_records_and_accepts_their_checksums(
    dtype: np.dtype[np.integer], tmp_path: Path
) -> None:
    pairs = [([5, 60_000], [7]), ([], []), (list(range(3, 300)), [9, 9]), ([4], [])]
    (tmp_path / "shard").write_bytes(pack_records(tokens_of(pairs, dtype)))
    records = list(tf.data.TFRecordDataset(str(tmp_path / "shard")).as_numpy_iterator())
    for record, (source, target) in zip(records, pairs, strict=True):
        ids = tf.io.decode_raw(record, tf.as_dtype(dtype))
        assert ids.numpy().tolist() == [*source, END_ID, *target, END_ID]


def test_the_bytes_are_those_that_tensorflow_writes(tmp_path: Path) -> None:
    tokens = random_tokens(SMALL)
    ends = np.flatnonzero(tokens == END_ID)[1::2] + 1
    with tf.io.TFRecordWriter(str(tmp_path / "shard")) as writer:
        for record in np.split(tokens, ends[:-1]):
            writer.write(record.tobytes())
    assert pack_records(tokens) == (tmp_path / "shard").read_bytes()


def test_no_pairs_are_no_bytes() -> None:
    assert pack_records(np.zeros(0, SMALL)) == b""
    assert len(unpack_records(b"", SMALL)) == 0


def test_what_is_not_whole_records_of_pairs_is_refused() -> None:
    content = pack_records(tokens_of([([5, 6], [7]), ([8], [9, 10])], SMALL))
    for part in (content[:-1], content[:40], content + b"x", b"text, and no records at all"):
        with pytest.raises(ValueError, match="expected whole records of uint16 ids"):
            unpack_records(part, SMALL)
    with pytest.raises(ValueError, match="end tokens"):
        unpack_records(pack_records(tokens_of([([5], [7]), ([8], [9])], SMALL)), LARGE)

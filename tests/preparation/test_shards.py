import json
from pathlib import Path

import numpy as np
import pytest

from seq2seq_memattn.data.pairs import id_dtype, read_shards
from seq2seq_memattn.preparation.shards import Block, Limits, Shard, ShardWriter, finished_shard
from seq2seq_memattn.preparation.write_once import WORK_NAME
from seq2seq_memattn.vocabulary import WordVocabulary

WORDS = WordVocabulary([f"w{i}" for i in range(20)], "words.txt")


def write(
    directory: Path, pairs: list[tuple[str, str]], limits: Limits | None, duplicates: bytes = b""
) -> Shard:
    (directory / WORK_NAME).mkdir(exist_ok=True)
    (directory / WORDS.file).write_bytes(WORDS.content)
    sources, targets = zip(*pairs, strict=True)
    block = Block(
        "train-00000",
        "\n".join(sources).encode(),
        "\n".join(targets).encode(),
        duplicates or bytes(len(pairs)),
        limits,
    )
    return ShardWriter(directory, WORDS.to_dict(), WORDS.to_dict())(block)


def texts(directory: Path, shard: Shard) -> list[tuple[str, str]]:
    assert shard.file is not None
    pairs = read_shards(directory, [shard.file], id_dtype(WORDS.size))
    return [
        (WORDS.decode(pairs.source(i)), WORDS.decode(pairs.target(i))) for i in range(len(pairs))
    ]


def test_a_pair_counts_for_the_first_filter_that_takes_it_out(tmp_path: Path) -> None:
    pairs = [
        ("w1 w2", "w3"),
        ("", "w3"),
        ("w1", "   "),
        ("w1 w2", "w3"),  # a duplicate
        ("w1 w2 w3 w4", "w3"),  # 5 tokens with the end token
        ("w1", "w1 w2 w3"),  # not over-long, but three times the source
        ("w1 w2", "w1 w2 w3"),
        ("", ""),  # empty and a duplicate: counts as empty
    ]
    shard = write(tmp_path, pairs, Limits(4, 2.0), bytes([0, 0, 0, 1, 0, 0, 0, 1]))
    assert shard.left_out == {"empty": 3, "duplicate": 1, "over_long": 1, "length_ratio": 1}
    assert texts(tmp_path, shard) == [pairs[0], pairs[6]]
    assert (shard.num_read, shard.num_examples) == (8, 2)
    assert (shard.max_source_length, shard.max_target_length) == (3, 4)
    assert shard.num_target_tokens == 2 + 4


def test_a_ratio_of_0_lets_any_ratio_pass(tmp_path: Path) -> None:
    assert write(tmp_path, [("w1 " * 30, "w1")], Limits(31, 0.0)).num_examples == 1


def test_without_limits_every_pair_stays(tmp_path: Path) -> None:
    pairs = [("", ""), ("w1", ""), ("w1", ""), ("w2 " * 200 + "w2", "w1 unknown")]
    shard = write(tmp_path, pairs, None, bytes([0, 0, 1, 0]))
    assert texts(tmp_path, shard) == [*pairs[:3], (pairs[3][0], "w1 <unk>")]
    assert shard.left_out == {}


def test_a_block_of_which_nothing_is_left_has_no_file(tmp_path: Path) -> None:
    shard = write(tmp_path, [("", "w1")], Limits(9, 0.0))
    assert shard.file is None
    assert shard.num_examples == 0
    assert not list(tmp_path.glob("*.npy"))
    assert finished_shard(tmp_path, "train-00000") == shard


def test_a_finished_shard_is_known_by_its_record(tmp_path: Path) -> None:
    assert finished_shard(tmp_path, "train-00000") is None
    shard = write(tmp_path, [("w1", "w2")], None)
    assert finished_shard(tmp_path, "train-00000") == shard
    assert json.loads((tmp_path / WORK_NAME / "train-00000.json").read_text())["num_read"] == 1


@pytest.mark.parametrize(("size", "bytes_an_id"), [(65_536, 2), (65_537, 4)])
def test_ids_are_as_wide_as_the_vocabulary_needs(
    size: int, bytes_an_id: int, tmp_path: Path
) -> None:
    (tmp_path / WORK_NAME).mkdir()
    words = WordVocabulary((f"w{i}" for i in range(size - 4)), "words.txt")
    (tmp_path / words.file).write_bytes(words.content)
    writer = ShardWriter(tmp_path, words.to_dict(), words.to_dict())
    last = f"w{size - 5}".encode()
    shard = writer(Block("train-00000", last, last, bytes(1), None))
    assert shard.file is not None
    assert np.load(tmp_path / shard.file.path).nbytes == 4 * bytes_an_id
    pairs = read_shards(tmp_path, [shard.file], id_dtype(size))
    assert pairs.target(0).tolist() == [size - 1]

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.data import text
from seq2seq_memattn.data.batching import Batch, Position
from seq2seq_memattn.data.copy_task import CopyTaskData
from seq2seq_memattn.data.manifest import DataFile
from seq2seq_memattn.data.pairs import TokenPairs, read_pairs
from seq2seq_memattn.data.splits import open_split
from seq2seq_memattn.data.text import TextData
from seq2seq_memattn.vocabulary import END_ID, PAD_ID
from tests.texts import make_text_data, pairs
from tests.training.runs import make_data

NUM_TRAIN, NUM_SHARDS, NUM_GROUPS = 290, 7, 3


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_text_data(tmp_path_factory.mktemp("text"), NUM_TRAIN, shard_pairs=45)


def open_train(directory: Path, **options: Any) -> TextData:
    """Three groups, which are of two and three shards."""
    given = {"batch_size": 8, "bucket_width": 6, "seed": 5, "group_pairs": 100}
    return TextData(directory, "train", **(given | options))


def rows(batch: Batch, name: str) -> list[tuple[int, ...]]:
    return [tuple(row[row != PAD_ID].tolist()) for row in batch[name]]


def run(data: TextData, position: Position, count: int) -> list[Any]:
    batches = islice(data.numpy_batches(position), count)
    return [(after, {k: v.tolist() for k, v in batch.items()}) for batch, after in batches]


def num_batches(data: TextData, num_epochs: int = 1) -> int:
    return sum(1 for _ in data.numpy_batches(num_epochs=num_epochs))


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("group_pairs", [1, 100, 10_000])
def test_every_pair_comes_once_an_epoch(directory: Path, shuffle: bool, group_pairs: int) -> None:
    data = open_train(directory, shuffle=shuffle, group_pairs=group_pairs)
    encoded = [
        (*data.source_vocabulary.encode(source), END_ID, *data.target_vocabulary.encode(target))
        for source, target in zip(*pairs(NUM_TRAIN, 1), strict=True)
    ]
    found = []
    for batch, _ in data.numpy_batches(num_epochs=1):
        for source, target in zip(
            rows(batch, "source"), rows(batch, "target_outputs"), strict=True
        ):
            found.append((*source, *target[:-1]))
            assert target[-1] == END_ID
    assert sorted(found) == sorted(encoded)


def test_epochs_are_shuffled_by_shards_and_by_pairs(directory: Path) -> None:
    data = open_train(directory, bucket_width=100)  # one bucket
    batches = [batch for batch, _ in data.numpy_batches(num_epochs=2)]
    half = len(batches) // 2
    first, second = (
        [row for batch in part for row in rows(batch, "source")]
        for part in (batches[:half], batches[half:])
    )
    assert sorted(first) == sorted(second)
    assert first != second
    third = NUM_TRAIN // 3
    assert set(first[:third]) != set(second[:third])  # groups of other shards


def test_an_order_belongs_to_its_seed(directory: Path) -> None:
    first, again, other = (
        run(open_train(directory, seed=seed), Position(), 50) for seed in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize("options", [{}, {"shuffle": False}, {"batch_tokens": 90}], ids=str)
def test_going_on_from_any_position_gives_the_batches_of_an_uninterrupted_run(
    directory: Path, options: dict[str, Any]
) -> None:
    total = num_batches(open_train(directory, **options), 2) + 3
    whole = run(open_train(directory, **options), Position(), total)
    positions = [Position(), *(after for after, _ in whole)]
    assert max(position.epoch for position in positions) == 2 * NUM_GROUPS
    for start in range(0, total, 5):
        rest = run(open_train(directory, **options), positions[start], total - start)
        assert rest == whole[start:]


def test_advance_counts_what_the_iteration_yields(directory: Path) -> None:
    data = open_train(directory)
    after = [position for position, _ in run(data, Position(), 60)]
    fresh = open_train(directory)
    assert [fresh.advance(Position(), n + 1) for n in range(60)] == after
    assert [fresh.advance(after[n], 1) for n in range(59)] == after[1:]


@pytest.mark.parametrize("position", [Position(-1, 0), Position(0, -1), Position(0, 999)])
def test_a_position_of_other_data_is_refused(directory: Path, position: Position) -> None:
    with pytest.raises(ValueError, match="position: expected one of this data, got"):
        open_train(directory).advance(position, 0)


def test_memory_holds_the_shards_of_one_group(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def counted(where: Path, files: Sequence[DataFile], dtype: np.dtype[np.integer]) -> TokenPairs:
        read.append(len(files))
        return read_pairs(where, files, dtype)

    monkeypatch.setattr(text, "read_pairs", counted)
    num_batches(open_train(directory))
    assert sorted(read) == [2, 2, 3]
    read.clear()
    data = open_train(directory, group_pairs=10_000)
    num_batches(data, num_epochs=4)
    assert read == [NUM_SHARDS]  # a small corpus is read once


def test_batches_by_tokens_fill_their_limit_and_no_more(directory: Path) -> None:
    data = open_train(directory, batch_tokens=120)
    sizes = []
    for batch, _ in data.numpy_batches(num_epochs=1):
        assert max(batch["source"].size, batch["target_outputs"].size) <= 120
        sizes.append(len(batch["source"]))
    assert len(set(sizes)) > 3
    assert max(sizes) == 120 // 7  # buckets of 6 tokens before the end token


def test_lengths_are_few_where_shapes_are_compiled(directory: Path) -> None:
    data = open_train(directory, pad_to_multiple=1)
    longest = data.manifest.split("train")
    for batch, _ in data.numpy_batches(num_epochs=1):
        for name, limit in (
            ("source", longest.max_source_length),
            ("target_inputs", longest.max_target_length),
        ):
            width = batch[name].shape[1]
            assert width % 6 == 1 or width == limit


def test_the_dataset_has_the_batches_of_the_iteration(directory: Path) -> None:
    data = open_train(directory)
    start = Position(1, 3)
    dataset = data.tf_dataset(start, num_epochs=1)
    expected = [batch for batch, _ in data.numpy_batches(start, num_epochs=1)]
    for found, batch in zip(dataset.as_numpy_iterator(), expected, strict=True):
        for name, array in batch.items():
            np.testing.assert_array_equal(found[name], array)


def test_a_damaged_shard_is_named_through_the_dataset_too(tmp_path: Path) -> None:
    directory = make_text_data(tmp_path, NUM_TRAIN, shard_pairs=45)
    data = open_train(directory)
    path = directory / "train-00000.tfrecord"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{path}: changed since it was prepared") as raised:
        for _ in zip(range(1000), data.tf_batches(Position()), strict=False):
            pass
    assert raised.value.__cause__ is None


def test_a_small_split_is_read_whole_in_the_order_of_its_text(directory: Path) -> None:
    data = TextData(directory, "valid", batch_size=4, shuffle=False)
    sources, targets = pairs(20, 2)
    assert len(data) == len(data.source) == len(data.target) == 20
    assert [data.source_vocabulary.decode(ids) for ids in data.source] == sources
    assert [data.target_vocabulary.decode(ids) for ids in data.target] == targets
    assert data.references(7) == targets[:7]
    assert data.references(100) == targets


def test_open_split_looks_at_the_files(directory: Path, tmp_path: Path) -> None:
    copy_task = make_data(tmp_path / "copy")
    shards = open_split(directory, "train", 4, 10, 3, batch_tokens=50)
    symbols = open_split(copy_task, "train", 4, 10, 3, batch_tokens=50)
    assert isinstance(shards, TextData)
    assert isinstance(symbols, CopyTaskData)
    assert symbols.references(3) == [
        symbols.target_vocabulary.decode(symbols.target[i]) for i in range(3)
    ]
    with pytest.raises(ValueError, match="expected shards, got text"):
        TextData(copy_task, "train", 4)
    with pytest.raises(ValueError, match="expected a split of text, got tfrecord"):
        CopyTaskData(directory, "train", 4)
    with pytest.raises(ValueError, match="split: expected one of"):
        open_split(directory, "test", 4)


def test_arguments_out_of_range_are_refused(directory: Path) -> None:
    with pytest.raises(ValueError, match="pad_to_multiple: expected at least 1, got 0"):
        open_train(directory, pad_to_multiple=0)
    with pytest.raises(ValueError, match="batch_size: expected at least 1, got 0"):
        next(open_train(directory, batch_size=0).numpy_batches())

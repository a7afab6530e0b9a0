import sys
import weakref
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.data import splits
from seq2seq_memattn.data.batching import Batch, BucketBatches, Position
from seq2seq_memattn.data.manifest import DataFile
from seq2seq_memattn.data.pairs import TokenPairs, read_shards
from seq2seq_memattn.data.splits import SplitData
from seq2seq_memattn.vocabulary import END_ID, PAD_ID
from tests.data.directories import LINES, make_directory, open_lines
from tests.texts import make_text_data, pairs

NUM_TRAIN, NUM_SHARDS, NUM_GROUPS = 290, 7, 3


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_text_data(tmp_path_factory.mktemp("text"), NUM_TRAIN, shard_pairs=45)


def open_train(directory: Path, **options: Any) -> SplitData:
    """Opens the training split in three groups of two or three shards."""
    given = {"batch_size": 8, "bucket_width": 6, "seed": 5, "group_pairs": 100}
    return SplitData(directory, "train", **(given | options))


def rows(batch: Batch, name: str) -> list[tuple[int, ...]]:
    return [tuple(row[row != PAD_ID].tolist()) for row in batch[name]]


def run(data: SplitData, position: Position, count: int) -> list[Any]:
    batches = islice(data.numpy_batches(position), count)
    return [(after, {k: v.tolist() for k, v in batch.items()}) for batch, after in batches]


def num_batches(data: SplitData, num_epochs: int = 1) -> int:
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
    assert set(first[:third]) != set(second[:third])  # the groups have different shards


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


def test_position_after_counts_what_the_iteration_yields(directory: Path) -> None:
    data = open_train(directory)
    after = [position for position, _ in run(data, Position(), 60)]
    fresh = open_train(directory)
    assert [fresh.position_after(Position(), n + 1) for n in range(60)] == after
    assert [fresh.position_after(after[n], 1) for n in range(59)] == after[1:]


@pytest.mark.parametrize("position", [Position(-1, 0), Position(0, -1), Position(0, 999)])
def test_a_position_of_other_data_is_refused(directory: Path, position: Position) -> None:
    with pytest.raises(ValueError, match="position: expected one in this data, got"):
        open_train(directory).position_after(position, 0)


def test_memory_holds_the_shards_of_one_group(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    held: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def counted(where: Path, files: Sequence[DataFile], dtype: np.dtype[np.integer]) -> TokenPairs:
        read.append(len(files))
        found = read_shards(where, files, dtype)
        held.append(weakref.ref(found.tokens))
        alive.append(sum(one() is not None for one in held))
        return found

    monkeypatch.setattr(splits, "read_shards", counted)
    num_batches(open_train(directory), num_epochs=3)
    assert sorted(read) == [2] * 6 + [3] * 3
    assert max(alive) <= 3  # the group in use, the next one, and the one being read
    read.clear()
    data = open_train(directory, group_pairs=10_000)
    num_batches(data, num_epochs=4)
    assert read == [NUM_SHARDS]  # a small corpus is read only once


def test_batches_by_tokens_fill_their_limit_and_no_more(directory: Path) -> None:
    data = open_train(directory, batch_tokens=120)
    sizes = []
    for batch, _ in data.numpy_batches(num_epochs=1):
        assert max(batch["source"].size, batch["target_outputs"].size) <= 120
        sizes.append(len(batch["source"]))
    assert len(set(sizes)) > 3
    assert max(sizes) == 120 // 7  # the longest has 6 tokens and the end token


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


def test_a_small_split_is_read_whole_in_the_order_of_its_text(directory: Path) -> None:
    data = SplitData(directory, "valid", batch_size=4, shuffle=False)
    sources, targets = pairs(20, 2)
    assert len(data) == len(data.source) == len(data.target) == 20
    assert [data.source_vocabulary.decode(ids) for ids in data.source] == sources
    assert [data.target_vocabulary.decode(ids) for ids in data.target] == targets
    assert data.references(7) == targets[:7]
    assert data.references(100) == targets


def test_arguments_out_of_range_are_refused(directory: Path) -> None:
    with pytest.raises(ValueError, match="pad_to_multiple: expected at least 1, got 0"):
        open_train(directory, pad_to_multiple=0)
    with pytest.raises(ValueError, match="batch_size: expected at least 1, got 0"):
        next(open_train(directory, batch_size=0).numpy_batches())
    with pytest.raises(ValueError, match="split: expected one of .*, got 'test'"):
        SplitData(directory, "test", 4)


# Splits of text


def test_an_epoch_of_lines_holds_every_line_once(tmp_path: Path) -> None:
    data = open_lines(make_directory(tmp_path), bucket_width=4)
    found = [row for batch, _ in data.numpy_batches(num_epochs=1) for row in batch["source"]]
    assert sorted(map(data.source_vocabulary.decode, found)) == sorted(LINES)


def test_lines_come_in_the_order_of_bucket_batches(tmp_path: Path) -> None:
    data = open_lines(make_directory(tmp_path), bucket_width=4, seed=9)
    order = BucketBatches(np.array([len(line.split()) + 1 for line in LINES]), 3, 4, seed=9)
    assert data.num_batches == order.num_batches
    expected = [[LINES[i] for i in batch] for epoch in range(2) for batch in order.epoch(epoch)]
    decode = data.target_vocabulary.decode
    batches = [batch for batch, _ in data.numpy_batches(num_epochs=2)]
    assert [list(map(decode, batch["target_outputs"])) for batch in batches] == expected


def test_lines_go_on_from_the_position_that_came_with_a_batch(tmp_path: Path) -> None:
    options: dict[str, Any] = {"batch_size": 2, "bucket_width": 4, "seed": 9}
    directory = make_directory(tmp_path)
    whole = run(open_lines(directory, **options), Position(), 15)
    rest = run(open_lines(directory, **options), whole[6][0], 8)
    assert rest == whole[7:]
    assert whole[-1][0].epoch > 1


def shapes(data: SplitData) -> set[int]:
    lengths = set()
    for batch, _ in data.numpy_batches(num_epochs=2):
        assert batch["target_inputs"].shape == batch["target_outputs"].shape
        assert {len(ids) for ids in batch.values()} == {2}
        lengths |= {batch["source"].shape[1], batch["target_inputs"].shape[1]}
    return lengths


@pytest.mark.parametrize(
    ("multiple", "expected"),
    [
        (1, {5, 9, 11}),  # bucket bounds plus the end token; the last is the longest length, 11
        (4, {8, 12}),
        (5, {5, 10, 15}),
    ],
)
def test_padding_to_multiples_gives_one_shape_a_bucket(
    multiple: int, expected: set[int], tmp_path: Path
) -> None:
    directory = make_directory(tmp_path)
    assert shapes(open_lines(directory, 2, bucket_width=4, pad_to_multiple=multiple)) == expected


def test_evaluation_batches_are_sorted_by_length(tmp_path: Path) -> None:
    data = open_lines(make_directory(tmp_path), shuffle=False)
    lengths = np.concatenate(
        [(batch["source"] != PAD_ID).sum(1) for batch, _ in data.numpy_batches(num_epochs=1)]
    )
    assert (np.diff(lengths) >= 0).all()


def test_a_dataset_without_tensorflow_names_the_extra_that_brings_it(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = open_train(directory)
    monkeypatch.delitem(sys.modules, "seq2seq_memattn.data.tf_batches", raising=False)
    monkeypatch.setitem(sys.modules, "tensorflow", None)  # importing it fails
    for make in (data.tf_dataset, data.fit_dataset):
        with pytest.raises(
            ModuleNotFoundError, match=r"pip install 'seq2seq_memattn\[tensorflow\]"
        ):
            make()

import dataclasses
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from seq2seq_memattn.data.batching import Position
from seq2seq_memattn.data.copy_task import Batch, CopyTaskData
from seq2seq_memattn.data.manifest import Manifest, Split, describe_file, write_manifest
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, START_ID, SymbolVocabulary

LINES = ["b a", "", "a b b a a", "c", "a a a", "c b", "b b b b b b b b b b", "c c"]


def make_directory(
    directory: Path, source: list[str] = LINES, target: list[str] = LINES, **changes: object
) -> Path:
    """Makes a data directory of the given lines; `changes` are other values of its split."""
    vocabulary = SymbolVocabulary("abc").to_dict()
    files = []
    for role, lines in (("source", source), ("target", target)):
        (directory / f"{role}.txt").write_text("".join(line + "\n" for line in lines))
        files.append(describe_file(directory, f"{role}.txt", role))
    split = dataclasses.replace(Split("text", tuple(files), len(source), 11, 11, 34), **changes)
    write_manifest(
        directory, Manifest("copy_task", vocabulary, vocabulary, {"train": split}, {}, {})
    )
    return directory


def assert_same(batch: Batch, other: Batch) -> None:
    assert batch.keys() == other.keys()
    for key in batch:
        assert batch[key].dtype == other[key].dtype == np.int32
        np.testing.assert_array_equal(batch[key], other[key])


def test_examples_are_the_lines_in_ids(tmp_path: Path) -> None:
    data = CopyTaskData(make_directory(tmp_path), "train", batch_size=3)
    assert len(data) == len(LINES)
    assert [data.source_vocabulary.decode(ids) for ids in data.source] == LINES
    assert [data.target_vocabulary.decode(ids) for ids in data.target] == LINES


def test_a_batch_by_hand(tmp_path: Path) -> None:
    directory = make_directory(tmp_path, ["b a", "", "c"], ["a", "b b c", ""])
    batch = CopyTaskData(directory, "train", batch_size=3).batch(np.array([1, 0, 2]))
    a, b, c, p = 3, 4, 5, PAD_ID
    assert_same(
        batch,
        {
            "source": np.array([[END_ID, p, p], [b, a, END_ID], [c, END_ID, p]], np.int32),
            "target_inputs": np.array(
                [[START_ID, b, b, c], [START_ID, a, p, p], [START_ID, p, p, p]], np.int32
            ),
            "target_outputs": np.array(
                [[b, b, c, END_ID], [a, END_ID, p, p], [END_ID, p, p, p]], np.int32
            ),
        },
    )


def test_an_empty_example_is_the_end_token_alone(tmp_path: Path) -> None:
    data = CopyTaskData(make_directory(tmp_path, ["", ""], ["", ""]), "train", batch_size=2)
    batch = data.batch(np.array([0, 1]))
    assert batch["source"].tolist() == [[END_ID], [END_ID]]
    assert batch["target_inputs"].tolist() == [[START_ID], [START_ID]]
    assert batch["target_outputs"].tolist() == [[END_ID], [END_ID]]


def test_an_epoch_holds_every_example_once(tmp_path: Path) -> None:
    data = CopyTaskData(make_directory(tmp_path), "train", batch_size=3, bucket_width=4)
    rows = [row for batch, _ in data.numpy_batches(num_epochs=1) for row in batch["source"]]
    assert sorted(map(data.source_vocabulary.decode, rows)) == sorted(LINES)


def test_batches_go_on_from_the_position_that_came_with_one(tmp_path: Path) -> None:
    directory = make_directory(tmp_path)
    data = CopyTaskData(directory, "train", batch_size=2, bucket_width=4, seed=9)
    run = list(data.numpy_batches(num_epochs=3))
    again = CopyTaskData(directory, "train", batch_size=2, bucket_width=4, seed=9)
    rest = list(again.numpy_batches(run[6][1], num_epochs=3))
    assert len(rest) == len(run) - 7
    for (batch, after), (other, other_after) in zip(run[7:], rest, strict=True):
        assert_same(batch, other)
        assert after == other_after


@pytest.mark.parametrize("position", [Position(), Position(1, 2)])
def test_the_tf_dataset_gives_the_same_batches(position: Position, tmp_path: Path) -> None:
    data = CopyTaskData(make_directory(tmp_path), "train", batch_size=3, bucket_width=4)
    dataset = data.tf_dataset(position, num_epochs=2)
    assert {key: spec.shape.as_list() for key, spec in dataset.element_spec.items()} == {
        "source": [None, None],
        "target_inputs": [None, None],
        "target_outputs": [None, None],
    }
    expected = [batch for batch, _ in data.numpy_batches(position, num_epochs=2)]
    batches = list(dataset.as_numpy_iterator())
    assert len(batches) == len(expected) > 1
    for batch, other in zip(batches, expected, strict=True):
        assert_same(batch, other)


def test_an_endless_tf_dataset_can_be_cut_anywhere(tmp_path: Path) -> None:
    data = CopyTaskData(make_directory(tmp_path), "train", batch_size=3, bucket_width=4)
    count = 2 * data.batches.num_batches + 1
    batches = list(data.tf_dataset().take(count).as_numpy_iterator())
    for batch, (other, _) in zip(batches, islice(data.numpy_batches(), count), strict=True):
        assert_same(batch, other)


def shapes(data: CopyTaskData) -> set[int]:
    lengths = set()
    for batch, _ in data.numpy_batches(num_epochs=2):
        assert batch["target_inputs"].shape == batch["target_outputs"].shape
        assert {len(ids) for ids in batch.values()} == {2}
        lengths |= {batch["source"].shape[1], batch["target_inputs"].shape[1]}
    return lengths


@pytest.mark.parametrize(
    ("multiple", "expected"),
    [
        (1, {5, 9, 11}),  # boundaries of width 4, end token added; the last cut at the longest, 11
        (4, {8, 12}),
        (5, {5, 10, 15}),
    ],
)
def test_padding_to_multiples_gives_one_shape_a_bucket(
    multiple: int, expected: set[int], tmp_path: Path
) -> None:
    directory = make_directory(tmp_path)
    data = CopyTaskData(directory, "train", 2, bucket_width=4, pad_to_multiple=multiple)
    assert shapes(data) == expected


def test_more_padding_changes_nothing_but_padding(tmp_path: Path) -> None:
    directory = make_directory(tmp_path)
    tight = CopyTaskData(directory, "train", 3).batch(np.array([0, 3]))
    wide = CopyTaskData(directory, "train", 3, pad_to_multiple=16).batch(np.array([0, 3]))
    for key, array in wide.items():
        length = tight[key].shape[1]
        np.testing.assert_array_equal(array[:2, :length], tight[key])
        assert (array[:2, length:] == PAD_ID).all()
    # The third row trains nothing.
    assert wide["source"][2].tolist() == [END_ID] + 15 * [PAD_ID]
    assert (wide["target_outputs"][2] == PAD_ID).all()


def test_evaluation_batches_are_sorted_by_length(tmp_path: Path) -> None:
    data = CopyTaskData(make_directory(tmp_path), "train", batch_size=3, shuffle=False)
    lengths = np.concatenate(
        [(batch["source"] != PAD_ID).sum(1) for batch, _ in data.numpy_batches(num_epochs=1)]
    )
    assert (np.diff(lengths) >= 0).all()


def test_a_bad_line_is_named_with_file_and_line(tmp_path: Path) -> None:
    make_directory(tmp_path, ["a", "b"], ["a", "x b"])
    with pytest.raises(ValueError, match="target.txt: line 2: unknown symbol 'x'"):
        CopyTaskData(tmp_path, "train", batch_size=2)


def test_bytes_that_are_not_utf8_are_located(tmp_path: Path) -> None:
    make_directory(tmp_path, ["a", "b"], ["a", "b"])
    (tmp_path / "source.txt").write_bytes(b"a\n\xff\n")  # of the same size
    with pytest.raises(ValueError, match="source.txt: line 2: expected UTF-8"):
        CopyTaskData(tmp_path, "train", batch_size=2)


def test_an_empty_split_is_an_error(tmp_path: Path) -> None:
    make_directory(tmp_path, [], [])
    with pytest.raises(ValueError, match="source.txt: expected lines of text, got an empty file"):
        CopyTaskData(tmp_path, "train", batch_size=2)


def test_sides_of_different_line_counts_are_an_error_with_both_counts(tmp_path: Path) -> None:
    make_directory(tmp_path, ["a", "b", "c"], ["a", "b"])
    with pytest.raises(ValueError, match="target.txt: expected 3 lines, got 2"):
        CopyTaskData(tmp_path, "train", batch_size=2)


def test_a_file_that_was_changed_is_an_error(tmp_path: Path) -> None:
    make_directory(tmp_path)
    path = tmp_path / "source.txt"
    path.write_text(path.read_text().replace("c b", "b c"))
    with pytest.raises(ValueError, match="source.txt: changed since it was prepared"):
        CopyTaskData(tmp_path, "train", batch_size=2)


def test_an_unknown_split_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"split: expected one of \['train'\], got 'test'"):
        CopyTaskData(make_directory(tmp_path), "test", batch_size=2)


def test_a_split_of_another_format_is_an_error(tmp_path: Path) -> None:
    make_directory(tmp_path, file_format="tfrecord")
    with pytest.raises(ValueError, match="expected a split of text, got tfrecord"):
        CopyTaskData(tmp_path, "train", batch_size=2)


def test_several_files_of_one_side_are_an_error(tmp_path: Path) -> None:
    make_directory(tmp_path)
    files = tuple(describe_file(tmp_path, f"{role}.txt", "source") for role in ("source", "target"))
    make_directory(tmp_path, files=files)
    with pytest.raises(ValueError, match="expected one source file in a split, got 2"):
        CopyTaskData(tmp_path, "train", batch_size=2)


def test_a_padding_multiple_below_one_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pad_to_multiple: expected at least 1, got 0"):
        CopyTaskData(make_directory(tmp_path), "train", batch_size=2, pad_to_multiple=0)


def test_the_end_of_an_iteration_waits_for_no_tuner(tmp_path: Path) -> None:
    dataset = CopyTaskData(make_directory(tmp_path), "train", batch_size=2).tf_dataset()
    assert dataset.options().autotune.enabled is False

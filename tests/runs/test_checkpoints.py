import dataclasses
import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from seq2seq_memattn.model import Seq2Seq
from seq2seq_memattn.runs.checkpoints import (
    CheckpointFolder,
    read_arrays,
    read_weights,
    write_arrays,
)
from tests.disks import FULL, small_disk_of
from tests.tolerances import as_array
from tests.training.runs import MODEL, damage

RECORD = {"update": 3, "best_bleu": 99.25, "position": [1, 4]}


def variables(seed: int) -> list[keras.Variable]:
    """Variables of different dtypes and shapes; one is empty."""
    generator = np.random.default_rng(seed)
    return [
        keras.Variable(generator.normal(size=[2, 3]), dtype="float32", name="kernel"),
        keras.Variable(generator.normal(size=[5]), dtype="float64", name="wide"),
        keras.Variable(generator.integers(0, 9, size=[2]), dtype="int32", name="count"),
        keras.Variable(generator.integers(0, 9, size=[]), dtype="int64", name="iteration"),
        keras.Variable(np.zeros([0, 4]), dtype="float32", name="empty"),
    ]


def values(given: list[keras.Variable]) -> list[Any]:
    return [np.array(variable) for variable in given]


def assert_equal(ours: list[Any], theirs: list[Any]) -> None:
    for left, right in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(left, right)


def save(folder: CheckpointFolder, update: int) -> Path:
    return folder.save(update, variables(update), {"best_bleu": float(update)})


def updates(folder: CheckpointFolder) -> list[int]:
    return [int(path.stem.split("-")[1]) for path in folder.paths()]


# One file


def test_variables_and_record_come_back_as_they_were(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a.npz", variables(1), RECORD)
    restored = variables(2)
    assert read_arrays(tmp_path / "a.npz", restored) == RECORD
    assert_equal(values(restored), values(variables(1)))


def test_names_that_keras_counts_up_do_not_matter(tmp_path: Path) -> None:
    def make() -> list[Any]:
        dense = keras.layers.Dense(2)  # Keras names it "dense", then "dense_1"
        dense.build((None, 3))
        return dense.variables

    first, second = make(), make()
    assert first[0].path != second[0].path
    write_arrays(tmp_path / "a.npz", first, RECORD)
    read_arrays(tmp_path / "a.npz", second)
    assert_equal(values(second), values(first))


def test_a_variable_that_is_listed_twice_stands_in_a_file_once(tmp_path: Path) -> None:
    first, second = variables(1), variables(2)
    write_arrays(tmp_path / "a.npz", [*first[:2], first[0], *first[2:]], RECORD)
    with np.load(tmp_path / "a.npz") as archive:
        assert len(archive.files) == len(first) + 1  # the record is one more
    read_arrays(tmp_path / "a.npz", [*second[:1], second[0], *second[1:]])
    assert_equal(values(second), values(first))


def test_a_file_of_other_variables_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_arrays(path, variables(1), RECORD)
    with pytest.raises(ValueError, match="a.npz: expected the variable wide; there is none"):
        read_arrays(path, variables(1)[1:] + variables(1)[:1])
    other = [keras.Variable(np.zeros([3, 2]), dtype="float32", name="kernel")]
    message = r"a.npz: expected kernel of shape \(3, 2\); got \(2, 3\)"
    with pytest.raises(ValueError, match=message):
        read_arrays(path, other)


def test_whatever_byte_is_damaged_a_file_is_refused_or_read_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_arrays(path, variables(1), RECORD)
    content = path.read_bytes()
    generator = np.random.default_rng(0)
    restored = variables(2)
    refused = 0
    before, written = values(restored), values(variables(1))
    places = generator.choice(len(content), size=500, replace=False)
    for place in places:
        changed = bytearray(content)
        changed[place] ^= int(generator.integers(1, 256))
        path.write_bytes(changed)
        try:
            assert read_arrays(path, restored) == RECORD
            assert_equal(values(restored), written)
            for variable, value in zip(restored, before, strict=True):
                variable.assign(value)
        except ValueError as error:
            refused += 1
            assert str(error).startswith(f"{path}: ")
            assert "\n" not in str(error)
            assert_equal(values(restored), before)  # nothing was assigned
    assert refused > len(places) / 2


def test_wherever_a_file_is_cut_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_arrays(path, variables(1), RECORD)
    content = path.read_bytes()
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match="a.npz: damaged checkpoint"):
            read_arrays(path, variables(2))


# Only weights


def model_and_optimizer(seed: int, **options: Any) -> tuple[Seq2Seq, Any]:
    model = Seq2Seq(dataclasses.replace(MODEL, seed=seed, **options))
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    return model, optimizer


@pytest.mark.parametrize("whole", [False, True])
def test_weights_come_from_files_of_weights_and_from_checkpoints(
    tmp_path: Path, whole: bool
) -> None:
    (saved, optimizer), (model, _) = model_and_optimizer(1), model_and_optimizer(2)
    more = [*saved.variables, *optimizer.variables] if whole else saved.weights
    write_arrays(tmp_path / "a.npz", more, RECORD)
    seeds = [as_array(v) for v in model.variables if v.name == "seed_generator_state"]
    assert read_weights(tmp_path / "a.npz", model.weights) == RECORD
    for ours, theirs in zip(model.weights, saved.weights, strict=True):
        np.testing.assert_array_equal(as_array(ours), as_array(theirs))
    after = [as_array(v) for v in model.variables if v.name == "seed_generator_state"]
    assert_equal(after, seeds)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"target_vocab_size": 9},
            r"expected target_embedding/embeddings of shape \(7, 5\); got \(9, 5\)",
        ),
        ({"decoder_layers": 1}, "expected the variable decoder/decoder_cell_1/kernel; there is no"),
        (
            {"decoder_layers": 3},
            r"expected no weight decoder/decoder_cell_2/kernel; got one of shape \(6, 24\)",
        ),
        ({"attention": "none", "bridge": "zero"}, r"expected decoder/decoder_cell_0/kernel of"),
        ({"tied_embeddings": "target", "mixing_units": 5}, "expected decoder/decoder_mixing/ker"),
    ],
)
def test_weights_that_do_not_fit_are_named_and_none_is_assigned(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    (saved, optimizer), (model, _) = model_and_optimizer(1, **options), model_and_optimizer(2)
    write_arrays(tmp_path / "a.npz", [*saved.variables, *optimizer.variables], RECORD)
    before = values(model.weights)
    with pytest.raises(ValueError, match=f"^{tmp_path / 'a.npz'}: {message}"):
        read_weights(tmp_path / "a.npz", model.weights)
    assert_equal(values(model.weights), before)


# A folder


def with_last_damaged(path: Path, saved: Sequence[int], how: str = "flipped") -> CheckpointFolder:
    """A folder of checkpoints after these updates, opened by a process that did not write them."""
    for update in saved:
        save(CheckpointFolder(path, keep=len(saved)), update)
    damage(CheckpointFolder(path, keep=1).paths()[-1], how)
    return CheckpointFolder(path, keep=2)


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path / "run" / "checkpoints", keep=3)
    assert folder.restore(variables(0)) == (None, [])
    for update in (2, 5, 9, 10, 1000):
        save(folder, update)
    assert updates(folder) == [9, 10, 1000]
    restored = variables(0)
    record, problems = folder.restore(restored)
    assert record == {"update": 1000, "best_bleu": 1000.0}
    assert problems == []
    assert_equal(values(restored), values(variables(1000)))


@pytest.mark.parametrize("how", ["truncated", "flipped"])
def test_the_one_before_a_damaged_checkpoint_is_used_and_that_is_said(
    tmp_path: Path, how: str
) -> None:
    folder = with_last_damaged(tmp_path, (1, 2, 3), how)
    restored = variables(0)
    record, problems = folder.restore(restored)
    assert record is not None and record["update"] == 2
    assert_equal(values(restored), values(variables(2)))
    (problem,) = problems
    assert problem.startswith(f"{folder.paths()[-1]}: damaged checkpoint (")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
def test_what_cannot_be_read_for_another_reason_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    folder = CheckpointFolder(tmp_path, keep=3)
    for update in (1, 2):
        save(folder, update)
    load = np.load

    def refused(stream: Any) -> Any:
        if stream.name == str(folder.paths()[-1]):
            raise OSError(number, os.strerror(number))
        return load(stream)

    monkeypatch.setattr(np, "load", refused)
    if number == errno.EIO:  # a damaged disk
        record, problems = folder.restore(variables(0))
        assert record is not None and record["update"] == 1 and len(problems) == 1
        return
    with pytest.raises(OSError) as error:
        folder.restore(variables(0))
    assert (error.value.errno, error.value.filename) == (number, str(folder.paths()[-1]))


def test_if_all_checkpoints_are_damaged_that_is_an_error(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, keep=3)
    for update in (1, 2):
        save(folder, update)
    for path in folder.paths():
        damage(path, "truncated")
    message = f"no checkpoint in {tmp_path} can be read: .*checkpoint-000000002.npz: damaged"
    with pytest.raises(ValueError, match=message):
        folder.restore(variables(0))


def test_a_damaged_checkpoint_does_not_push_out_whole_ones(tmp_path: Path) -> None:
    folder = with_last_damaged(tmp_path, (8, 9))
    folder.keep = 1
    assert folder.restore(variables(0))[0] == {"update": 8, "best_bleu": 8.0}
    folder.save(8, variables(8), {})
    assert updates(folder) == [8, 9]
    save(folder, 9)
    assert updates(folder) == [9]
    assert folder.restore(variables(0))[1] == []


def test_what_was_skipped_goes_before_whole_checkpoints_do(tmp_path: Path) -> None:
    folder = with_last_damaged(tmp_path, (6, 8))
    folder.restore(variables(0))
    assert folder.last_whole == tmp_path / "checkpoint-000000006.npz"
    save(folder, 9)
    assert updates(folder) == [6, 9]
    assert folder.last_whole == tmp_path / "checkpoint-000000009.npz"


def test_checkpoints_that_a_training_replaces_while_they_are_read_are_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training, reading = (CheckpointFolder(tmp_path, keep=1) for _ in range(2))
    save(training, 1)
    paths = CheckpointFolder.paths
    found = paths(reading)  # what a reader has listed before the training goes on
    save(training, 2)
    listed = iter([found])
    monkeypatch.setattr(reading, "paths", lambda: next(listed, paths(reading)))
    assert reading.restore(variables(0)) == ({"update": 2, "best_bleu": 2.0}, [])


def test_other_files_are_no_checkpoints(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, keep=1)
    for name in ("notes.txt", "checkpoint-1.npz", ".checkpoint-000000007.npz.12.tmp"):
        (tmp_path / name).write_text("x")
    save(folder, 2)
    assert updates(folder) == [2]
    # A reader of a run in training must not remove a file that is about to be renamed.
    assert len(list(tmp_path.iterdir())) == 4


# Disks


def test_a_disk_that_is_full_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CheckpointFolder(tmp_path, keep=1)
    save(folder, 1)

    def fill(stream: Any, **arrays: Any) -> None:
        stream.write(b"a few bytes")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("numpy.savez", fill)
    with pytest.raises(OSError, match="No space left") as raised:
        save(folder, 2)
    assert raised.value.filename == str(tmp_path / "checkpoint-000000002.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000001.npz"]
    assert folder.restore(variables(0))[0] == {"update": 1, "best_bleu": 1.0}


def test_a_folder_that_cannot_be_written_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CheckpointFolder(tmp_path, keep=1)
    save(folder, 1)

    def refuse(*arguments: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "a temporary name")

    monkeypatch.setattr("builtins.open", refuse)  # permissions do not stop the superuser
    with pytest.raises(PermissionError) as raised:
        save(folder, 2)
    monkeypatch.undo()
    assert raised.value.filename == str(tmp_path / "checkpoint-000000002.npz")
    assert updates(folder) == [1]


def test_what_cannot_be_read_again_does_not_replace_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CheckpointFolder(tmp_path, keep=1)
    save(folder, 1)
    whole = np.savez

    def damage(stream: Any, **arrays: Any) -> None:
        whole(stream, **arrays)
        stream.seek(200)
        stream.write(b"other bytes")

    monkeypatch.setattr("numpy.savez", damage)
    with pytest.raises(OSError, match="failed its read-back check") as raised:
        save(folder, 2)
    assert raised.value.filename == str(tmp_path / "checkpoint-000000002.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000001.npz"]


@small_disk_of(2**16, is_for_one_file=True)
def test_a_really_full_disk_leaves_the_old_checkpoint(small_disk: Path) -> None:
    folder = CheckpointFolder(small_disk / "checkpoints", keep=2)
    save(folder, 1)
    large = [keras.Variable(np.zeros([50_000]), dtype="float32", name="large")]
    with pytest.raises(OSError, match=FULL) as raised:
        folder.save(2, large, {})
    assert raised.value.filename.endswith("checkpoint-000000002.npz")
    assert updates(folder) == [1]
    assert len(list(folder.folder.iterdir())) == 1
    save(folder, 3)
    assert updates(folder) == [1, 3]

import dataclasses
import errno
import fcntl
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.data.locks import locked
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.data.splits import SplitData
from seq2seq_memattn.preparation import copy_task
from seq2seq_memattn.preparation.copy_task import CopyTaskOptions, generate, prepare
from tests.preparation.preparations import killed
from tests.running import error_lines, run_python

FILES = [
    "manifest.json",
    "train.source.txt",
    "train.target.txt",
    "valid.source.txt",
    "valid.target.txt",
]


def options_for(directory: Path) -> CopyTaskOptions:
    return CopyTaskOptions(
        max_length=5, output_dir=str(directory), num_train=70, num_valid=30, vocab_size=4, seed=2
    )


def run_command(directory: Path, *flags: str) -> subprocess.CompletedProcess[bytes]:
    return run_python(
        "-m",
        "data_prep.copy_task",
        "--max_length=5",
        f"--output_dir={directory}",
        "--num_train=70",
        "--num_valid=30",
        *flags,
    )


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


# The generator


def test_lengths_and_symbols_are_uniform_over_their_whole_range() -> None:
    examples = generate(20_000, max_length=4, vocab_size=7, seed=1)
    lengths = np.bincount([len(example) for example in examples])
    symbols = np.bincount(np.concatenate(examples))
    assert len(examples) == 20_000
    # Counts are binomial, with means 4,000 and about 5,714; five standard deviations are allowed.
    np.testing.assert_allclose(lengths, [4_000] * 5, atol=5 * 57)
    np.testing.assert_allclose(symbols, [sum(symbols) / 7] * 7, atol=5 * 70)


def test_a_seed_gives_the_same_examples_and_another_seed_others() -> None:
    first, again, other = (
        [example.tolist() for example in generate(50, 9, 20, seed)] for seed in (4, 4, 5)
    )
    assert first == again != other


def test_no_example_need_have_the_longest_length() -> None:
    (example,) = generate(1, max_length=1000, vocab_size=2, seed=0)
    assert len(example) < 1000


def test_splits_get_separate_streams(tmp_path: Path) -> None:
    options = dataclasses.replace(
        options_for(tmp_path / "data"), max_length=40, num_train=30, vocab_size=20
    )
    prepare(options)
    files = contents(tmp_path / "data")
    train, valid = (files[f"{name}.source.txt"].splitlines() for name in ("train", "valid"))
    common = {line for line in train if line.count(b" ") > 5} & set(valid)
    assert not common
    lengths = [[line.count(b" ") for line in lines] for lines in (train, valid)]
    assert abs(np.corrcoef(lengths)[0, 1]) < 0.5


def test_the_validation_data_does_not_depend_on_the_number_of_training_examples(
    tmp_path: Path,
) -> None:
    options = options_for(tmp_path / "a")
    prepare(options)
    prepare(dataclasses.replace(options, output_dir=str(tmp_path / "b"), num_train=7))
    a, b = contents(tmp_path / "a"), contents(tmp_path / "b")
    assert a["valid.source.txt"] == b["valid.source.txt"]
    assert a["train.source.txt"] != b["train.source.txt"]


# The directory


def test_the_directory_holds_text_and_a_manifest_that_describes_it(tmp_path: Path) -> None:
    manifest, is_new = prepare(options_for(tmp_path / "data"))
    assert is_new
    files = contents(tmp_path / "data")
    assert sorted(files) == FILES
    assert manifest == read_manifest(tmp_path / "data")
    assert manifest.options == {
        "max_length": 5,
        "num_train": 70,
        "num_valid": 30,
        "vocab_size": 4,
        "seed": 2,
    }
    for name, count in (("train", 70), ("valid", 30)):
        lines = files[f"{name}.source.txt"].decode().split("\n")[:-1]
        split = manifest.split(name)
        assert files[f"{name}.source.txt"] == files[f"{name}.target.txt"]
        assert len(lines) == split.num_examples == count
        lengths = [len(line.split()) for line in lines]
        assert min(lengths) == 0  # some lines are empty
        assert split.max_source_length == split.max_target_length == max(lengths) + 1 == 6
        assert split.num_target_tokens == sum(lengths) + count
        assert {symbol for line in lines for symbol in line.split()} == {"0", "1", "2", "3"}


def test_a_model_can_read_what_was_prepared(tmp_path: Path) -> None:
    prepare(options_for(tmp_path / "data"))
    data = SplitData(tmp_path / "data", "valid", batch_size=30, shuffle=False)
    assert data.source_vocabulary.size == 7
    lines = (tmp_path / "data" / "valid.source.txt").read_text().split("\n")[:-1]
    assert [data.source_vocabulary.decode(ids) for ids in data.source] == lines


def test_the_same_options_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        prepare(options_for(tmp_path / name))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_second_run_with_the_same_options_does_nothing(tmp_path: Path) -> None:
    prepare(options_for(tmp_path / "data"))
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()}
    manifest, is_new = prepare(options_for(tmp_path / "data"))
    assert not is_new
    assert manifest.split("train").num_examples == 70
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()}


def test_other_options_are_refused_and_named(tmp_path: Path) -> None:
    prepare(options_for(tmp_path / "data"))
    before = contents(tmp_path / "data")
    other = dataclasses.replace(options_for(tmp_path / "data"), seed=3, num_train=71)
    with pytest.raises(ValueError) as caught:
        prepare(other)
    differing = "num_train (there 70, now 71), seed (there 2, now 3)"
    assert f"data: prepared with other options: {differing}; choose another" in str(caught.value)
    assert contents(tmp_path / "data") == before


def test_a_directory_from_before_an_option_existed_counts_as_having_its_default(
    tmp_path: Path,
) -> None:
    options = dataclasses.replace(options_for(tmp_path / "data"), seed=CopyTaskOptions.seed)
    prepare(options)
    path = tmp_path / "data" / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["options"]["seed"]
    path.write_text(json.dumps(manifest))
    assert not prepare(options)[1]
    with pytest.raises(ValueError, match=r"seed \(there 0, now 3\)"):
        prepare(dataclasses.replace(options, seed=3))


def test_a_directory_of_another_task_is_refused(tmp_path: Path) -> None:
    prepare(options_for(tmp_path / "data"))
    path = tmp_path / "data" / "manifest.json"
    path.write_text(path.read_text().replace('"copy_task"', '"reverse_task"'))
    with pytest.raises(ValueError, match="task .there 'reverse_task', now 'copy_task'"):
        prepare(options_for(tmp_path / "data"))


def test_a_damaged_directory_is_refused(tmp_path: Path) -> None:
    prepare(options_for(tmp_path / "data"))
    (tmp_path / "data" / "valid.target.txt").unlink()
    with pytest.raises(ValueError, match="valid.target.txt: no such file"):
        prepare(options_for(tmp_path / "data"))


def test_someone_elses_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="expected a new or empty directory"):
        prepare(options_for(tmp_path))
    with pytest.raises(ValueError, match="expected a new or empty directory"):
        prepare(options_for(tmp_path / "thesis.txt"))
    assert contents(tmp_path) == {"thesis.txt": b"years of work"}


def test_an_empty_directory_and_missing_parents_are_fine(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    prepare(options_for(tmp_path / "empty"))
    prepare(options_for(tmp_path / "new" / "deep"))
    assert sorted(contents(tmp_path / "empty")) == sorted(contents(tmp_path / "new" / "deep"))


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        prepare(options_for(tmp_path / "data"))
    assert list(tmp_path.iterdir()) == []


def test_leftovers_go_unless_their_process_still_runs(tmp_path: Path) -> None:
    running, killed, kept = (
        tmp_path / f".data.preparing-{end}" for end in ("a" * 32, "b" * 32, "kept")
    )
    for path in (running, killed, kept):
        path.mkdir()
        (path / "train.source.txt").write_text("half")
    with locked(running, "preparing this directory"):
        prepare(options_for(tmp_path / "data"))
    assert sorted(tmp_path.iterdir()) == [running, kept, tmp_path / "data"]


def test_without_file_locks_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perhaps_running = tmp_path / f".data.preparing-{'a' * 32}"
    perhaps_running.mkdir()

    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    prepare(options_for(tmp_path / "data"))
    assert sorted(tmp_path.iterdir()) == [perhaps_running, tmp_path / "data"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_length", 0),
        ("num_train", 0),
        ("num_valid", -1),
        ("vocab_size", 0),
        ("seed", -1),
        ("output_dir", ""),
    ],
)
def test_options_out_of_range_are_refused_and_named(
    name: str, value: object, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=f"^{name}: expected .* got"):
        dataclasses.replace(options_for(tmp_path), **{name: value})


# The command


# Each file is synced, then its directory. 1: while train.source.txt is written; 9: while the
# manifest is written; 10: before the directory is renamed.
@pytest.mark.parametrize("moment", [1, 9, 10])
def test_a_killed_preparation_leaves_nothing_that_looks_ready_and_the_next_one_works(
    moment: int, tmp_path: Path
) -> None:
    directory = tmp_path / "data"
    options = ["--max_length=5", f"--output_dir={directory}", "--num_train=70", "--num_valid=30"]
    process = killed("data_prep.copy_task", options, moment)
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()
    (leftover,) = tmp_path.iterdir()
    assert leftover.name.startswith(".data.preparing-")
    assert (leftover / "manifest.json").exists() == (moment == 10)
    with pytest.raises(ValueError, match="no such data directory"):
        read_manifest(directory)

    _, is_new = prepare(options_for(directory))
    assert is_new
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert sorted(contents(directory)) == FILES


def test_the_command_prints_its_figures_last_and_the_rest_on_standard_error(
    tmp_path: Path,
) -> None:
    process = run_command(tmp_path / "data")
    assert process.returncode == 0, process.stderr.decode()
    result = json.loads(process.stdout)
    assert result["num_train"] == 70
    assert result["num_valid"] == 30
    assert result["is_new"]
    manifest = read_manifest(tmp_path / "data")
    assert manifest.options["vocab_size"] == 20
    assert result["train_target_tokens"] == manifest.split("train").num_target_tokens

    process = run_command(tmp_path / "data")
    assert process.returncode == 0
    assert "nothing to do" in process.stderr.decode()
    assert json.loads(process.stdout) == result | {"is_new": False}

    process = run_command(tmp_path / "data", "--seed=9")
    assert process.returncode == 1
    assert process.stdout == b""
    (line,) = error_lines(process)
    assert "seed (there 0, now 9)" in line


def test_the_command_refuses_bad_options_in_one_line(tmp_path: Path) -> None:
    process = run_command(tmp_path / "data", "--vocab_size=0")
    assert process.returncode == 1
    assert error_lines(process) == ["error: vocab_size: expected at least 1, got 0"]
    assert "Traceback" not in process.stderr.decode()
    assert list(tmp_path.iterdir()) == []


def test_of_two_preparations_at_a_time_the_slower_takes_what_the_other_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = options_for(tmp_path / "data")
    write_split = copy_task._write_split
    others = []

    def slow(*arguments: Any) -> Any:
        if not others:
            others.append(run_command(tmp_path / "data", "--vocab_size=4", "--seed=2"))
        return write_split(*arguments)

    monkeypatch.setattr(copy_task, "_write_split", slow)
    manifest, is_new = prepare(chosen)
    assert others[0].returncode == 0, others[0].stderr
    assert not is_new
    assert manifest == read_manifest(tmp_path / "data")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]

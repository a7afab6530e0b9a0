"""A preparation is done once, and resumes where it was stopped."""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tqdm import tqdm

from seq2seq_memattn.preparation import stages, write_once
from seq2seq_memattn.preparation.parallel_text import ParallelTextOptions, prepare
from seq2seq_memattn.preparation.write_once import WORK_NAME
from tests.disks import small_disk_of
from tests.marks import slow
from tests.preparation.preparations import (
    KEPT,
    TRAIN,
    VALID,
    command,
    contents,
    flags,
    killed,
    options_in,
)
from tests.running import ROOT, error_lines, is_running
from tests.texts import pairs, text_options, write_lines


def test_a_second_run_does_nothing_even_when_the_text_is_gone(tmp_path: Path) -> None:
    options = options_in(tmp_path)
    prepare(options)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()}
    Path(options.train_source).unlink()
    manifest, is_new = prepare(dataclasses.replace(options, processes=2))
    assert not is_new
    assert manifest.split("train").num_examples == 300
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()}


def test_other_options_and_other_text_are_refused(tmp_path: Path) -> None:
    options = options_in(tmp_path)
    prepare(options)
    before = contents(tmp_path / "data")
    with pytest.raises(ValueError, match="other options: max_length .there 100, now 50"):
        prepare(dataclasses.replace(options, max_length=50))
    write_lines(Path(options.train_source), [*TRAIN[0], "more"])
    with pytest.raises(ValueError, match="other options: input_bytes .there .* now "):
        prepare(options)
    assert contents(tmp_path / "data") == before


def test_text_of_the_same_size_that_is_newer_is_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = options_in(tmp_path)
    prepare(options)
    prepare(options)
    assert "is newer than" not in capsys.readouterr().err
    made = (tmp_path / "data" / "manifest.json").stat().st_mtime
    os.utime(options.train_source, (made + 1, made + 1))
    _, is_new = prepare(options)
    assert not is_new
    lines = [line for line in capsys.readouterr().err.splitlines() if "is newer than" in line]
    assert len(lines) == 1 and lines[0].startswith(options.train_source)


def test_a_vocabulary_that_is_gone_is_noticed(tmp_path: Path) -> None:
    options = options_in(tmp_path)
    prepare(options)
    (model,) = (tmp_path / "data").glob("*.model")
    model.unlink()
    with pytest.raises(ValueError, match=f"{model}: no such file"):
        prepare(options)


def test_a_vocabulary_that_goes_before_the_text_is_encoded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = stages.TextPreparation._make_vocabularies

    def spoil(self: stages.TextPreparation) -> dict[str, stages.Spec]:
        specs = make(self)
        (model,) = self.directory.glob("*.model")
        model.unlink()
        return specs

    with monkeypatch.context() as patch, pytest.raises(ValueError, match=r"\.model: no such file"):
        patch.setattr(stages.TextPreparation, "_make_vocabularies", spoil)
        prepare(options_in(tmp_path))
    assert prepare(options_in(tmp_path))[1]


def test_another_vocabulary_of_the_same_size_is_refused(tmp_path: Path) -> None:
    prepare(options_in(tmp_path))
    (model,) = (tmp_path / "data").glob("*.model")
    given = tmp_path / "given.model"
    given.write_bytes(model.read_bytes())
    options = dataclasses.replace(
        options_in(tmp_path, vocab_size=ParallelTextOptions.vocab_size),
        kind="subwords", model_file=str(given), output_dir=str(tmp_path / "other"),
    )  # fmt: skip
    assert [prepare(options)[1] for _ in range(2)] == [True, False]
    given.write_bytes(given.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match="other: prepared with another .*given.model"):
        prepare(options)


@pytest.mark.parametrize("what", ["changed", "went away"])
def test_text_that_changes_meanwhile_is_noticed_and_work_that_still_fits_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    options = options_in(tmp_path)
    source, away = Path(options.train_source), tmp_path / "away"
    make = stages.TextPreparation._make_vocabularies

    def spoil(self: stages.TextPreparation) -> dict[str, stages.Spec]:
        if what == "changed":
            write_lines(source, TRAIN[0][::-1])
        else:
            source.rename(away)
        return make(self)

    with monkeypatch.context() as patch, pytest.raises(OSError, match=f"an input file {what}"):
        patch.setattr(stages.TextPreparation, "_make_vocabularies", spoil)
        prepare(options)
    assert (tmp_path / KEPT).is_dir() == (what == "went away")
    assert not (tmp_path / "data").exists()
    if what == "went away":
        away.rename(source)
    _, is_new = prepare(options)
    assert is_new


def test_a_mount_point_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "is_mount", lambda path: path == tmp_path)
    with pytest.raises(ValueError, match=f"{tmp_path}: expected no mount point; name a new"):
        write_once.prepare_once(
            str(tmp_path), "task", {}, {}, lambda directory: pytest.fail("made")
        )


def test_someone_elses_files_are_left_alone(tmp_path: Path) -> None:
    options = options_in(tmp_path)
    (tmp_path / "data").mkdir()
    write_lines(tmp_path / "data" / "thesis.txt", ["years of work"])
    with pytest.raises(ValueError, match="expected a new or empty directory"):
        prepare(options)
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["thesis.txt"]


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def interrupt(
    options: ParallelTextOptions, stop: Callable[[subprocess.Popen[bytes]], None]
) -> tuple[int, str, dict[str, int]]:
    """Stops the command between shards; returns its status, errors and the shards' times."""
    kept = Path(options.output_dir).with_name(KEPT)
    process = subprocess.Popen(
        [sys.executable, "-m", "data_prep.parallel_text", *flags(options)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        while len(list((kept / WORK_NAME).glob("train-*.json"))) < 3:
            assert process.poll() is None, process.communicate()[1].decode()
            time.sleep(0.002)
        process.send_signal(signal.SIGSTOP)  # so that it cannot finish first
        stop(process)
        process.send_signal(signal.SIGCONT)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert output == b""
    assert not Path(options.output_dir).exists()
    names = [path.stem for path in (kept / WORK_NAME).glob("train-*.json")]
    assert 3 <= len(names) < 200
    shards = [kept / f"{name}.npy" for name in names]
    return process.returncode, errors.decode(), {p.name: p.stat().st_mtime_ns for p in shards}


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> tuple[ParallelTextOptions, dict[str, bytes]]:
    """Options of a small preparation, and the files that it makes without interruption."""
    folder = tmp_path_factory.mktemp("few")
    options = options_in(folder, shard_pairs=100)
    prepare(options)
    return options, contents(folder / "data")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[ParallelTextOptions, dict[str, bytes]]:
    """Options of a preparation with many shards, and its files without interruption."""
    folder = tmp_path_factory.mktemp("many")
    options = text_options(folder, pairs(20_000, 5), VALID, shard_pairs=100, processes=2)
    prepare(options)
    return options, contents(folder / "data")


@pytest.mark.parametrize("number", [signal.SIGKILL, *slow(signal.SIGTERM, signal.SIGINT)])
def test_a_stopped_preparation_goes_on_with_the_next_shard(
    number: signal.Signals,
    many: tuple[ParallelTextOptions, dict[str, bytes]],
    tmp_path: Path,
) -> None:
    options = dataclasses.replace(many[0], output_dir=str(tmp_path / "data"))
    workers: list[int] = []

    def stop(process: subprocess.Popen[bytes]) -> None:
        workers.extend(children(process.pid))
        process.send_signal(number)

    status, errors, finished = interrupt(options, stop)
    expected = {
        signal.SIGKILL: (-9, ""),
        signal.SIGTERM: (143, "error: terminated"),
        signal.SIGINT: (130, "error: interrupted"),
    }
    assert status == expected[number][0], errors
    assert expected[number][1] in errors
    assert "Traceback" not in errors
    deadline = time.monotonic() + 30
    while any(map(is_running, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.02)

    prepare(options)
    assert contents(tmp_path / "data") == many[1]
    times = {name: (tmp_path / "data" / name).stat().st_mtime_ns for name in finished}
    assert times == finished
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_preparation_resumes_without_progress_bars(
    many: tuple[ParallelTextOptions, dict[str, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stages, "tqdm", partial(tqdm, disable=True))
    options = dataclasses.replace(many[0], output_dir=str(tmp_path / "data"))
    interrupt(options, lambda process: process.kill())
    prepare(options)
    assert contents(tmp_path / "data") == many[1]


# Each file is synced, then its directory. The command is killed while it writes 1: its state,
# 4: the validation text, 7: the sample, 9: the result of reading, 11: the vocabulary's dict,
# 13: the manifest; or 14: before it renames the directory.
@pytest.mark.parametrize("moment", [4, 9, 13, *slow(1, 7, 11, 14)])
def test_a_preparation_killed_at_any_stage_leaves_nothing_that_looks_ready(
    moment: int, few: tuple[ParallelTextOptions, dict[str, bytes]], tmp_path: Path
) -> None:
    options = dataclasses.replace(few[0], output_dir=str(tmp_path / "data"))
    process = killed("data_prep.parallel_text", flags(options), moment)
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()
    assert not (tmp_path / "data").exists()
    assert (tmp_path / KEPT / "manifest.json").exists() == (moment == 14)
    prepare(options)
    assert contents(tmp_path / "data") == few[1]
    assert not (tmp_path / KEPT).exists()


def test_an_interrupted_preparation_does_not_go_on_with_other_options_or_text(
    many: tuple[ParallelTextOptions, dict[str, bytes]], tmp_path: Path
) -> None:
    source = tmp_path / "train.source"
    shutil.copy(many[0].train_source, source)
    options = dataclasses.replace(
        many[0], output_dir=str(tmp_path / "data"), train_source=str(source)
    )
    interrupt(options, lambda process: process.kill())
    with pytest.raises(ValueError, match="kept: an interrupted preparation with other options"):
        prepare(dataclasses.replace(options, max_length=30))
    stamp = source.stat().st_mtime_ns
    os.utime(source, ns=(stamp + 1, stamp + 1))
    with pytest.raises(ValueError, match="kept: .* other options or input files; remove it"):
        prepare(options)
    os.utime(source, ns=(stamp, stamp))
    assert prepare(options)[1]


def test_what_an_interrupted_removal_left_is_not_taken_for_finished_work(
    few: tuple[ParallelTextOptions, dict[str, bytes]], tmp_path: Path
) -> None:
    options = dataclasses.replace(few[0], output_dir=str(tmp_path / "data"))
    assert killed("data_prep.parallel_text", flags(options), 13).returncode
    kept = tmp_path / KEPT
    (kept / WORK_NAME / "state.json").unlink()  # as when the folder of work goes first
    stale = kept / "train-00099.npy"
    stale.write_bytes(b"of another text")
    other = dataclasses.replace(options, max_length=7)
    manifest, is_new = prepare(other)
    assert is_new and manifest.split("train").left_out["over_long"] > 0
    assert not (tmp_path / "data" / stale.name).exists()


def test_two_commands_do_not_prepare_one_directory_at_once(
    many: tuple[ParallelTextOptions, dict[str, bytes]], tmp_path: Path
) -> None:
    options = dataclasses.replace(many[0], output_dir=str(tmp_path / "data"))

    def stop(process: subprocess.Popen[bytes]) -> None:
        with pytest.raises(ValueError, match="another process is preparing this directory"):
            prepare(options)
        process.kill()

    interrupt(options, stop)


def test_a_directory_that_another_process_finished_first_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_in(tmp_path)
    manifest, _ = prepare(options)
    answers = iter([False, True])
    monkeypatch.setattr(write_once, "_is_prepared", lambda *where: next(answers))
    assert prepare(options) == (manifest, False)
    assert not list(tmp_path.glob(".*preparing*"))


@small_disk_of(2200 * 1024)
def test_a_full_disk_keeps_the_finished_shards_and_a_larger_one_takes_the_rest(
    many: tuple[ParallelTextOptions, dict[str, bytes]], small_disk: Path
) -> None:
    options = dataclasses.replace(many[0], output_dir=str(small_disk / "data"))
    process = command(options)
    assert process.returncode == 1
    (line,) = error_lines(process)
    assert ".npy: No space left on device" in line
    assert "Traceback" not in process.stderr.decode()
    kept = small_disk / KEPT
    finished = {
        record.stem: (kept / f"{record.stem}.npy").stat().st_mtime_ns
        for record in (kept / WORK_NAME).glob("train-*.json")
    }
    assert finished
    assert not (small_disk / "data").exists()
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    assert command(options).returncode == 0
    assert contents(small_disk / "data") == many[1]
    for name, stamp in finished.items():
        assert (small_disk / "data" / f"{name}.npy").stat().st_mtime_ns == stamp

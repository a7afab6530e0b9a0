import dataclasses
import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from data_prep.output import WORK_NAME
from data_prep.parallel_text import ParallelTextOptions, prepare
from seq2seq_memattn.data.manifest import Manifest, read_manifest
from seq2seq_memattn.data.text import TextData
from seq2seq_memattn.vocabulary import SubwordVocabulary, vocabulary_from_dict
from tests.commands import ROOT, error_lines, run_python
from tests.texts import STRANGE, pairs, text_options, write_lines

TRAIN, VALID = pairs(300, 1), pairs(20, 2)
KEPT = ".data.preparing-kept"


def options_in(folder: Path, **options: Any) -> ParallelTextOptions:
    return text_options(folder, TRAIN, VALID, **options)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def decoded(directory: Path, split: str) -> list[tuple[str, str]]:
    data = TextData(directory, split, 1)
    source, target = data.source_vocabulary, data.target_vocabulary
    return [
        (source.decode(s), target.decode(t)) for s, t in zip(data.source, data.target, strict=True)
    ]


def flags(options: ParallelTextOptions) -> list[str]:
    return [
        f"--{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in options.to_dict().items()
    ]


def command(options: ParallelTextOptions) -> subprocess.CompletedProcess[bytes]:
    return run_python("-m", "data_prep.parallel_text", *flags(options))


# The directory


def test_the_directory_holds_shards_text_of_the_validation_set_and_the_model(
    tmp_path: Path,
) -> None:
    manifest, is_new = prepare(options_in(tmp_path, shard_pairs=120))
    directory = tmp_path / "data"
    assert is_new
    assert manifest == read_manifest(directory)
    assert sorted(contents(directory)) == [
        "manifest.json",
        "subwords.model",
        "train-00000.tfrecord",
        "train-00001.tfrecord",
        "train-00002.tfrecord",
        "valid-00000.tfrecord",
        "valid.source.txt",
        "valid.target.txt",
    ]
    assert [path.name for path in tmp_path.glob(".*")] == []
    assert decoded(directory, "train") == list(zip(*TRAIN, strict=True))
    assert decoded(directory, "valid") == list(zip(*VALID, strict=True))
    assert (directory / "valid.target.txt").read_text().split("\n")[:-1] == VALID[1]
    assert manifest.versions.keys() == {"seq2seq_memattn", "numpy", "python", "sentencepiece"}
    assert manifest.options["vocab_size"] == 400
    assert "processes" not in manifest.options


def test_the_manifest_counts_what_is_in_the_shards(tmp_path: Path) -> None:
    sources, targets = [*TRAIN[0], "", TRAIN[0][0]], [*TRAIN[1], "x", TRAIN[1][0]]
    options = text_options(tmp_path, (sources, targets), VALID, max_length=20, shard_pairs=77)
    manifest, _ = prepare(options)
    data = TextData(tmp_path / "data", "train", 1)
    split = manifest.split("train")
    assert split.num_examples == len(data.source)
    assert split.max_source_length == max(map(len, data.source)) + 1 <= 20
    assert split.max_target_length == max(map(len, data.target)) + 1 <= 20
    assert split.num_target_tokens == sum(map(len, data.target)) + len(data.target)
    assert split.left_out["empty"] == split.left_out["duplicate"] == 1
    assert split.left_out["over_long"] > 0
    assert split.num_examples + sum(split.left_out.values()) == 302


def test_test_sets_are_named_by_their_files_and_keep_every_pair(tmp_path: Path) -> None:
    lines = ["ba dö", "", "ba dö", "ki " * 300 + "ki"]
    first = write_lines(tmp_path / "flickr.source", lines)
    second = tmp_path / "coco_2.tok.gz"
    second.write_bytes(gzip.compress(first.read_bytes()))
    manifest, _ = prepare(
        options_in(tmp_path, test_source=f"{first},{second}", test_target=f"{first},{second}")
    )
    assert list(manifest.splits) == ["train", "valid", "flickr", "coco_2"]
    for name in ("flickr", "coco_2"):
        assert decoded(tmp_path / "data", name) == [(line, line) for line in lines]
        assert (tmp_path / "data" / f"{name}.source.txt").read_bytes() == first.read_bytes()


@pytest.mark.parametrize(
    ("sources", "targets", "message"),
    [
        ("a,b", "a", "test_source and test_target: expected as many files, got 2 and 1"),
        ("", "a", "got 0 and 1"),
        ("x/valid.en", "x/valid.de", "test_source: expected a name of its own for x/valid.en"),
        ("a.en,b/a.en", "a,b", "got 'a'"),
    ],
)
def test_wrong_test_sets_are_refused(
    sources: str, targets: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        options_in(tmp_path, test_source=sources, test_target=targets)


def test_lines_with_strange_characters_are_one_line_each_and_come_back(tmp_path: Path) -> None:
    sources = [*TRAIN[0], *STRANGE, "carriage\rreturn"]
    targets = [*TRAIN[1], *STRANGE, "carriage\rreturn"]
    prepare(text_options(tmp_path, (sources, targets), (sources[-9:], targets[-9:])))
    expected = [*STRANGE, "carriage return"]  # as decoded: a line break would end the line
    assert decoded(tmp_path / "data", "train")[-9:] == list(zip(expected, expected, strict=True))
    assert decoded(tmp_path / "data", "valid") == list(zip(expected, expected, strict=True))
    raw = (tmp_path / "data" / "valid.target.txt").read_bytes()
    assert raw.decode().split("\n")[:-1] == targets[-9:]


def test_packed_text_gives_the_same_files(tmp_path: Path) -> None:
    options = options_in(tmp_path / "plain")
    prepare(options)
    packed = {}
    for name, path in options.inputs().items():
        packed[name] = f"{path}.gz"
        Path(packed[name]).write_bytes(gzip.compress(Path(path).read_bytes()))
    prepare(dataclasses.replace(options, output_dir=str(tmp_path / "packed"), **packed))
    plain, unpacked = contents(tmp_path / "plain" / "data"), contents(tmp_path / "packed")
    assert plain.pop("manifest.json") != unpacked.pop("manifest.json")
    assert plain == unpacked


@pytest.mark.parametrize("processes", [2, 3])
def test_the_number_of_processes_changes_nothing(processes: int, tmp_path: Path) -> None:
    options = options_in(tmp_path, shard_pairs=50)
    prepare(options)
    other = str(tmp_path / "other")
    prepare(dataclasses.replace(options, output_dir=other, processes=processes))
    assert contents(tmp_path / "data") == contents(tmp_path / "other")


# Vocabularies


def vocabularies(manifest: Manifest, directory: Path) -> list[Any]:
    specs = (manifest.source_vocabulary, manifest.target_vocabulary)
    return [vocabulary_from_dict(spec, directory) for spec in specs]


def test_both_sides_share_a_vocabulary_unless_they_are_to_have_their_own(tmp_path: Path) -> None:
    sides = (TRAIN[0], [line.upper() for line in TRAIN[1]])
    joint, _ = prepare(text_options(tmp_path / "joint", sides, VALID))
    assert joint.source_vocabulary == joint.target_vocabulary
    separate, _ = prepare(
        text_options(tmp_path / "own", sides, VALID, separate_vocabularies=True, vocab_size=330)
    )
    source, target = vocabularies(separate, tmp_path / "own" / "data")
    assert (source.file, target.file) == ("source.subwords.model", "target.subwords.model")
    line = TRAIN[0][0]
    assert len(source.encode(line)) < len(target.encode(line))
    assert len(target.encode(line.upper())) < len(source.encode(line.upper()))


@pytest.mark.parametrize(("kind", "size"), [("words", 60), ("characters", 20)])
def test_words_and_characters_have_the_size_asked_for(kind: str, size: int, tmp_path: Path) -> None:
    manifest, _ = prepare(options_in(tmp_path, kind=kind, vocab_size=size))
    source, target = vocabularies(manifest, tmp_path / "data")
    assert source.size == target.size == size
    for found, line in zip(decoded(tmp_path / "data", "valid"), VALID[0], strict=True):
        assert found[0] == source.decode(source.encode(line))
    assert TextData(tmp_path / "data", "valid", 1).references(20) == VALID[1]


def test_a_given_model_is_used_as_it_is(tmp_path: Path) -> None:
    prepare(options_in(tmp_path / "first"))
    model = tmp_path / "first" / "data" / "subwords.model"
    manifest, _ = prepare(options_in(tmp_path / "second", model_file=str(model), vocab_size=9))
    (source, _) = vocabularies(manifest, tmp_path / "second" / "data")
    assert isinstance(source, SubwordVocabulary)
    assert source.content == model.read_bytes()
    shard = "train-00000.tfrecord"
    first, second = (contents(tmp_path / name / "data")[shard] for name in ("first", "second"))
    assert first == second


def test_a_model_without_byte_fallback_is_used_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TRAIN[0]), model_writer=model, vocab_size=80, minloglevel=2
    )
    (tmp_path / "foreign").write_bytes(model.getvalue())
    valid = (["ba dö", "日 ba"], ["ba", "ki"])
    options = text_options(tmp_path, TRAIN, valid, model_file=str(tmp_path / "foreign"))
    manifest, _ = prepare(options)
    assert "foreign: trained without byte fallback" in capsys.readouterr().err
    (source, _) = vocabularies(manifest, tmp_path / "data")
    assert source.size == 3 + 80
    found = decoded(tmp_path / "data", "valid")
    assert found[0] == ("ba dö", "ba")
    assert found[1] == (source.decode([*source.encode("日"), *source.encode("ba")]), "ki")
    assert "日" not in found[1][0]


def test_a_given_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "words.txt", ["a", "b"])
    with pytest.raises(ValueError, match=r"model_file: .*words\.txt: .*SentencePiece model"):
        prepare(options_in(tmp_path, model_file=str(path)))
    assert not (tmp_path / KEPT).exists()


def test_a_corpus_smaller_than_the_vocabulary_says_what_is_possible(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^vocab_size: the corpus: expected at most (\d+)"):
        prepare(options_in(tmp_path, vocab_size=16_000))
    assert not (tmp_path / "data").exists()
    assert not (tmp_path / KEPT).exists()


def test_a_model_is_made_from_a_sample_drawn_with_the_seed(tmp_path: Path) -> None:
    models = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        options = options_in(tmp_path / name, vocab_sentences=100, seed=seed, vocab_size=330)
        prepare(options)
        models.append((tmp_path / name / "data" / "subwords.model").read_bytes())
    assert models[0] == models[1] != models[2]


# Once, and going on


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
    """Stops the command between shards; returns its status, its errors and the shards' times."""
    kept = Path(options.output_dir).with_name(KEPT)
    process = subprocess.Popen(
        [sys.executable, "-m", "data_prep.parallel_text", *flags(options)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while len(list((kept / WORK_NAME).glob("train-*.json"))) < 3:
        assert process.poll() is None, process.communicate()[1].decode()
        time.sleep(0.002)
    stop(process)
    output, errors = process.communicate(timeout=60)
    assert output == b""
    assert not Path(options.output_dir).exists()
    names = [path.stem for path in (kept / WORK_NAME).glob("train-*.json")]
    assert 3 <= len(names) < 200
    shards = [kept / f"{name}.tfrecord" for name in names]
    return process.returncode, errors.decode(), {p.name: p.stat().st_mtime_ns for p in shards}


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> tuple[ParallelTextOptions, dict[str, bytes]]:
    """Options of a small preparation, and what it makes undisturbed."""
    folder = tmp_path_factory.mktemp("few")
    options = options_in(folder, shard_pairs=100)
    prepare(options)
    return options, contents(folder / "data")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[ParallelTextOptions, dict[str, bytes]]:
    """Options of a preparation with many shards, and what it makes undisturbed."""
    folder = tmp_path_factory.mktemp("many")
    options = text_options(folder, pairs(20_000, 5), VALID, shard_pairs=100, processes=2)
    prepare(options)
    return options, contents(folder / "data")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
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
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.02)

    prepare(options)
    assert contents(tmp_path / "data") == many[1]
    times = {name: (tmp_path / "data" / name).stat().st_mtime_ns for name in finished}
    assert times == finished
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


KILLED = """
import os, runpy, signal, sys

calls = 0
real_fsync = os.fsync

def fsync(descriptor):
    global calls
    calls += 1
    if calls == {moment}:
        os.kill(os.getpid(), signal.SIGKILL)
    real_fsync(descriptor)

os.fsync = fsync
sys.argv = ["parallel_text", *{flags!r}]
runpy.run_module("data_prep.parallel_text", run_name="__main__")
"""


# Each file is synced, and then its directory. 1: while the state is written; 4: the validation
# text; 7: the sample; 9: what the reading found; 11: the vocabulary's dict; 13: the manifest;
# 14: before the directory takes its name.
@pytest.mark.parametrize("moment", [1, 4, 7, 9, 11, 13, 14])
def test_a_preparation_killed_at_any_stage_leaves_nothing_that_looks_ready(
    moment: int, few: tuple[ParallelTextOptions, dict[str, bytes]], tmp_path: Path
) -> None:
    options = dataclasses.replace(few[0], output_dir=str(tmp_path / "data"))
    process = run_python("-c", KILLED.format(moment=moment, flags=flags(options)))
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


def test_two_commands_do_not_prepare_one_directory_at_once(
    many: tuple[ParallelTextOptions, dict[str, bytes]], tmp_path: Path
) -> None:
    options = dataclasses.replace(many[0], output_dir=str(tmp_path / "data"))

    def stop(process: subprocess.Popen[bytes]) -> None:
        with pytest.raises(ValueError, match="another process is preparing this directory"):
            prepare(options)
        process.kill()

    interrupt(options, stop)


@pytest.mark.parametrize("small_disk", ["2200k"], indirect=True)
def test_a_full_disk_keeps_the_finished_shards_and_a_larger_one_takes_the_rest(
    many: tuple[ParallelTextOptions, dict[str, bytes]], small_disk: Path
) -> None:
    options = dataclasses.replace(many[0], output_dir=str(small_disk / "data"))
    process = command(options)
    assert process.returncode == 1
    (line,) = error_lines(process)
    assert ".tfrecord: No space left on device" in line
    assert "Traceback" not in process.stderr.decode()
    kept = small_disk / KEPT
    finished = {
        record.stem: (kept / f"{record.stem}.tfrecord").stat().st_mtime_ns
        for record in (kept / WORK_NAME).glob("train-*.json")
    }
    assert finished
    assert not (small_disk / "data").exists()
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    assert command(options).returncode == 0
    assert contents(small_disk / "data") == many[1]
    for name, stamp in finished.items():
        assert (small_disk / "data" / f"{name}.tfrecord").stat().st_mtime_ns == stamp


# Bad input


def refused(options: ParallelTextOptions, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        prepare(options)
    assert "\n" not in str(caught.value)
    assert not Path(options.output_dir).exists()
    assert not Path(options.output_dir).with_name(KEPT).exists()


@pytest.mark.parametrize("split", ["train", "valid"])
def test_sides_of_different_length_are_an_error_with_both_counts(
    split: str, tmp_path: Path
) -> None:
    options = options_in(tmp_path)
    write_lines(tmp_path / f"{split}.target", ["x"] * 5)
    count = 300 if split == "train" else 20
    refused(options, f"{split}.source and .*{split}.target: .* got {count} and 5$")


@pytest.mark.parametrize("name", ["train_source", "valid_target"])
def test_missing_empty_and_wrongly_encoded_files_are_named(name: str, tmp_path: Path) -> None:
    options = options_in(tmp_path)
    path = Path(getattr(options, name))
    path.write_bytes(b"one\ntwo \xff\n")
    refused(options, f"{path.name}: line 2: expected UTF-8, got byte 0xff at byte 8 of the file")
    path.write_bytes(b"")
    refused(options, f"{path.name}: expected lines of text, got an empty file")
    path.unlink()
    refused(options, f"^{name}: .*{path.name}: no such file")
    refused(dataclasses.replace(options, **{name: "-"}), f"^{name}: expected the name of a file")


def test_training_text_of_which_nothing_is_left_is_an_error(tmp_path: Path) -> None:
    options = text_options(tmp_path, (TRAIN[0], [""] * 300), VALID)
    refused(options, "train: no pair is left; left out: {'empty': 300}")


def test_text_of_empty_lines_has_no_vocabulary(tmp_path: Path) -> None:
    options = text_options(tmp_path, ([""] * 3, [" "] * 3), VALID)
    refused(options, "vocab_size: the corpus: ")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("vocab_size", 4, "vocab_size: expected at least 5, got 4"),
        ("max_length", 1, "max_length: expected at least 2, got 1"),
        ("max_length_ratio", -1.0, "max_length_ratio: expected at least 0"),
        ("shard_pairs", 0, "shard_pairs: expected at least 1"),
        ("processes", -1, "processes: expected at least 0"),
        ("character_coverage", 1.1, "character_coverage: expected 0.98 to 1, got 1.1"),
        ("output_dir", "", "output_dir: expected the name"),
        ("kind", "runes", "`kind` must be one of 'subwords', 'words', 'characters'"),
    ],
)
def test_options_out_of_range_are_refused_and_named(
    name: str, value: object, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(options_in(tmp_path), **{name: value})


def test_a_given_model_does_not_go_with_words(tmp_path: Path) -> None:
    for other in ({"kind": "words"}, {"separate_vocabularies": True}):
        with pytest.raises(ValueError, match="model_file: expected kind subwords and one"):
            options_in(tmp_path, model_file="m", **other)


# The command


def test_the_command_prints_its_figures_last_and_what_was_left_out_once(tmp_path: Path) -> None:
    sources, targets = [*TRAIN[0], "", TRAIN[0][0]], [*TRAIN[1], "x", TRAIN[1][0]]
    options = text_options(tmp_path, (sources, targets), VALID)
    process = command(options)
    assert process.returncode == 0, process.stderr.decode()
    result = json.loads(process.stdout)
    assert result["num_train"] == 300
    assert (result["left_out_empty"], result["left_out_duplicate"]) == (1, 1)
    assert result["left_out_over_long"] == 0
    assert result["is_new"]
    errors = process.stderr.decode()
    assert errors.count("302 training pairs; left out: 1 empty, 1 duplicate") == 1
    assert "encoding: 100%" in errors

    process = command(options)
    assert process.returncode == 0
    assert "nothing to do" in process.stderr.decode()
    assert json.loads(process.stdout) == result | {"is_new": False}


def test_the_command_refuses_bad_input_in_one_line(tmp_path: Path) -> None:
    options = options_in(tmp_path)
    write_lines(Path(options.train_target), ["x"])
    process = command(options)
    assert process.returncode == 1
    assert process.stdout == b""
    (line,) = error_lines(process)
    assert line.endswith("expected as many lines in both, got 300 and 1")
    assert "Traceback" not in process.stderr.decode()

import dataclasses
import gzip
import io
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from seq2seq_memattn.data.manifest import Manifest, read_manifest
from seq2seq_memattn.data.splits import SplitData
from seq2seq_memattn.preparation.parallel_text import prepare
from seq2seq_memattn.vocabulary import SubwordVocabulary, vocabulary_from_dict
from tests.preparation.preparations import (
    KEPT,
    TRAIN,
    VALID,
    contents,
    decoded,
    options_in,
)
from tests.texts import STRANGE, text_options, write_lines

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
        "train-00000.npy",
        "train-00001.npy",
        "train-00002.npy",
        "valid-00000.npy",
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
    data = SplitData(tmp_path / "data", "train", 1)
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
        ("x/valid.en", "x/valid.de", "test_source: expected a unique set name for x/valid.en"),
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
    expected = [*STRANGE, "carriage return"]  # decoded; a line break would end the line
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
    assert SplitData(tmp_path / "data", "valid", 1).references(20) == VALID[1]


def test_a_sentence_may_have_more_characters_than_words(tmp_path: Path) -> None:
    long = "ba " * 100 + "ba"  # 301 characters
    train = [*TRAIN[0], long], [*TRAIN[1], long]
    for kind, expected in (("words", 1), ("characters", 0)):
        options = text_options(tmp_path / kind, train, VALID, kind=kind, vocab_size=20)
        manifest, _ = prepare(options)
        assert manifest.split("train").left_out.get("over_long", 0) == expected
    assert manifest.options["max_length"] == 500


def test_a_given_model_is_used_as_it_is(tmp_path: Path) -> None:
    prepare(options_in(tmp_path / "first"))
    model = tmp_path / "first" / "data" / "subwords.model"
    manifest, _ = prepare(options_in(tmp_path / "second", model_file=str(model)))
    (source, _) = vocabularies(manifest, tmp_path / "second" / "data")
    assert isinstance(source, SubwordVocabulary)
    assert source.content == model.read_bytes()
    assert "vocab_size" not in manifest.options and "seed" not in manifest.options
    shard = "train-00000.npy"
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
    assert "foreign: has no byte fallback" in capsys.readouterr().err
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

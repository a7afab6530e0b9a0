"""Messages of the command: errors for bad input, and its figures."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from seq2seq_memattn.preparation.parallel_text import ParallelTextOptions, prepare
from tests.preparation.preparations import (
    KEPT,
    TRAIN,
    VALID,
    command,
    options_in,
)
from tests.running import error_lines
from tests.texts import text_options, write_lines

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
    refused(options, "train: every pair was left out: {'empty': 300}")


def test_text_of_empty_lines_has_no_vocabulary(tmp_path: Path) -> None:
    options = text_options(tmp_path, ([""] * 3, [" "] * 3), VALID)
    refused(options, "the corpus: expected a training pair with text on both sides, got none")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("vocab_size", 4, "vocab_size: expected at least 5, got 4"),
        ("max_length", 1, "max_length: expected at least 2, .*got 1"),
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


@pytest.mark.parametrize("name", ["splits_hyphens", "has_escapes", "has_normalised_punctuation"])
def test_options_of_the_tokenizer_are_refused_without_it(name: str, tmp_path: Path) -> None:
    value = not getattr(ParallelTextOptions, name)
    with pytest.raises(ValueError, match=f"{name}: has no effect without is_tokenised"):
        options_in(tmp_path, **{name: value})
    assert getattr(options_in(tmp_path, is_tokenised=True, **{name: value}), name) == value


def test_text_is_truecased_or_lower_cased(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is_truecased: expected without is_lowercased"):
        options_in(tmp_path, is_truecased=True, is_lowercased=True)


def test_a_given_model_does_not_go_with_words(tmp_path: Path) -> None:
    for other in ({"kind": "words"}, {"separate_vocabularies": True}):
        with pytest.raises(ValueError, match="model_file: expected kind subwords and one"):
            options_in(tmp_path, model_file="m", **other)


SUBWORDS = {"normalisation": "nfkc", "character_coverage": 0.99}
VOCABULARY = {"vocab_size": 9, "vocab_sentences": 9, "seed": 9}


@pytest.mark.parametrize(
    ("other", "name", "value"),
    [
        *(({"kind": "words"}, *one) for one in SUBWORDS.items()),
        *(({"model_file": "m"}, *one) for one in (SUBWORDS | VOCABULARY).items()),
    ],
)
def test_options_of_training_a_model_are_refused_if_none_is_trained(
    other: dict[str, Any], name: str, value: Any, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=f"{name}: has no effect with {next(iter(other))}"):
        options_in(tmp_path, **other, **{name: value})


@pytest.mark.parametrize(("name", "value"), [("train", ""), ("train", "a,"), ("valid", "")])
def test_an_empty_file_name_is_refused(name: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"{name}_source and {name}_target: .* an empty name"):
        options_in(tmp_path, **{f"{name}_source": value, f"{name}_target": value})


def test_the_name_of_a_validation_file_may_have_a_comma(tmp_path: Path) -> None:
    options = options_in(tmp_path, valid_source="a,b.en", valid_target="a,b.de")
    assert options.inputs()["valid_source"] == "a,b.en"


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

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seq2seq_memattn.data.manifest import (
    FORMAT_VERSION,
    MANIFEST_NAME,
    DataFile,
    Manifest,
    Split,
    describe_file,
    read_manifest,
    verify_file,
    write_manifest,
)
from seq2seq_memattn.vocabulary import SymbolVocabulary


def make_directory(directory: Path) -> Manifest:
    vocabulary = SymbolVocabulary(["a", "b"]).to_dict()
    (directory / "train.source.txt").write_text("a b\n\n")
    (directory / "train.target.txt").write_text("b\na a\n")
    files = tuple(
        describe_file(directory, f"train.{role}.txt", role) for role in ("source", "target")
    )
    split = Split("text", files, 2, 3, 3, 5)
    options = {"seed": 7, "nested": {"list": [1, None, "x"]}}
    manifest = Manifest("test", vocabulary, vocabulary, {"train": split}, options, {"numpy": "2"})
    write_manifest(directory, manifest)
    return manifest


def change(directory: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    path = directory / MANIFEST_NAME
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    manifest = make_directory(tmp_path)
    assert read_manifest(tmp_path) == manifest
    assert read_manifest(str(tmp_path)) == manifest


def test_the_file_is_readable_json_with_a_format_version(tmp_path: Path) -> None:
    make_directory(tmp_path)
    content = json.loads((tmp_path / MANIFEST_NAME).read_text())
    assert content["format_version"] == FORMAT_VERSION
    assert content["splits"]["train"]["files"][0]["path"] == "train.source.txt"


def test_files_are_described_by_size_and_checksum(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert describe_file(tmp_path, "file", "source") == DataFile(
        "source",
        "file",
        3,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",  # FIPS 180-2, B.1
    )


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="absent: no such data directory"):
        read_manifest(tmp_path / "absent")


def test_a_directory_without_manifest_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="manifest.json: no such file"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b'{"task": \xff}'])
def test_a_manifest_that_is_not_json_is_an_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / MANIFEST_NAME).write_bytes(content)
    with pytest.raises(ValueError, match="manifest.json: expected JSON, got: ") as caught:
        read_manifest(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_manifest_that_is_no_object_is_an_error(tmp_path: Path) -> None:
    (tmp_path / MANIFEST_NAME).write_text("[1]")
    with pytest.raises(ValueError, match="expected a JSON object, got list"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_format_version_is_an_error(version: object, tmp_path: Path) -> None:
    make_directory(tmp_path)
    change(tmp_path, lambda content: content.update(format_version=version))
    with pytest.raises(ValueError, match=f"format_version: expected 1, got {version!r}"):
        read_manifest(tmp_path)


def all_fields() -> list[tuple[Any, ...]]:
    """The path of every field in the format: of the manifest, a split and a split's file."""
    split = ("splits", "train")
    file = (*split, "files", 0)
    records = [((), Manifest), (split, Split), (file, DataFile)]
    return [(*at, f.name) for at, record in records for f in dataclasses.fields(record)]


LATER_FIELDS = [
    ("splits", "train", "left_out"),
    ("text_form",),
]  # older manifests without these fields can be read


@pytest.mark.parametrize(
    "path", [path for path in all_fields() if path not in LATER_FIELDS], ids=str
)
def test_a_missing_field_is_named(path: tuple[Any, ...], tmp_path: Path) -> None:
    make_directory(tmp_path)

    def remove(content: Any) -> None:
        for key in path[:-1]:
            content = content[key]
        del content[path[-1]]

    change(tmp_path, remove)
    with pytest.raises(ValueError, match=rf"manifest.json: .*{path[-1]}: missing$"):
        read_manifest(tmp_path)


def test_a_manifest_from_before_later_fields_is_read(tmp_path: Path) -> None:
    make_directory(tmp_path)
    change(tmp_path, lambda content: content["splits"]["train"].pop("left_out"))
    change(tmp_path, lambda content: content.pop("text_form"))
    assert read_manifest(tmp_path).split("train").left_out == {}
    assert read_manifest(tmp_path).text_form == {}


@pytest.mark.parametrize("path", all_fields(), ids=str)
def test_a_field_of_the_wrong_type_is_named(path: tuple[Any, ...], tmp_path: Path) -> None:
    make_directory(tmp_path)

    def spoil(content: Any) -> None:
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = True

    change(tmp_path, spoil)
    with pytest.raises(ValueError, match=rf"manifest.json: .*{path[-1]}: expected \w+, got True"):
        read_manifest(tmp_path)


def test_an_unknown_field_is_named(tmp_path: Path) -> None:
    make_directory(tmp_path)
    change(tmp_path, lambda content: content["splits"]["train"].update(colour="red"))
    with pytest.raises(ValueError, match="splits.train.colour: unknown field"):
        read_manifest(tmp_path)


def test_a_record_that_is_no_object_is_named(tmp_path: Path) -> None:
    make_directory(tmp_path)
    change(tmp_path, lambda content: content["splits"].update(train=3))
    with pytest.raises(ValueError, match="splits.train: expected a JSON object, got int"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "a/../../b", ""])
def test_a_path_outside_of_the_directory_is_refused(path: str, tmp_path: Path) -> None:
    make_directory(tmp_path)
    change(tmp_path, lambda content: content["splits"]["train"]["files"][1].update(path=path))
    with pytest.raises(ValueError, match=r"splits.train.files\[1\]: path: expected one inside"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("name", ["/etc/passwd", "../../secret", "folder/model", "..", 3])
def test_a_truecase_model_outside_of_the_directory_is_refused(name: Any, tmp_path: Path) -> None:
    make_directory(tmp_path)
    form = {"is_truecased": True, "truecase_model": name}
    change(tmp_path, lambda content: content["text_form"].update(form))
    message = "manifest.json: text_form: truecase_model: expected a name without directories, got "
    with pytest.raises(ValueError, match=f"{message}{name!r}$"):
        read_manifest(tmp_path)


def test_an_unknown_file_format_is_refused(tmp_path: Path) -> None:
    make_directory(tmp_path)
    change(tmp_path, lambda content: content["splits"]["train"].update(file_format="csv"))
    with pytest.raises(ValueError, match="splits.train: file_format: .* got 'csv'"):
        read_manifest(tmp_path)


def test_a_missing_data_file_is_named(tmp_path: Path) -> None:
    make_directory(tmp_path)
    (tmp_path / "train.target.txt").unlink()
    with pytest.raises(ValueError, match="train.target.txt: no such file"):
        read_manifest(tmp_path)


def test_a_data_file_of_another_size_is_named_with_both_sizes(tmp_path: Path) -> None:
    make_directory(tmp_path)
    (tmp_path / "train.target.txt").write_text("b\n")
    with pytest.raises(ValueError, match="train.target.txt: .* expected 6 bytes, got 2"):
        read_manifest(tmp_path)


def test_a_data_file_of_the_same_size_but_other_bytes_is_found_by_its_checksum(
    tmp_path: Path,
) -> None:
    file = make_directory(tmp_path).splits["train"].files[0]
    verify_file(tmp_path, file)
    (tmp_path / file.path).write_text("b a\n\n")
    read_manifest(tmp_path)
    with pytest.raises(ValueError, match="train.source.txt: changed .* expected sha256"):
        verify_file(tmp_path, file)


def test_an_unknown_split_or_role_is_an_error_that_names_it(tmp_path: Path) -> None:
    manifest = make_directory(tmp_path)
    with pytest.raises(ValueError, match=r"split: expected one of \['train'\], got 'test'"):
        manifest.split("test")
    with pytest.raises(ValueError, match="role 'examples'"):
        manifest.split("train").files_of("examples")


def test_a_failed_write_keeps_the_old_manifest(tmp_path: Path) -> None:
    manifest = make_directory(tmp_path)
    bad = dataclasses.replace(manifest, options={"rate": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        write_manifest(tmp_path, bad)
    assert read_manifest(tmp_path) == manifest
    assert not list(tmp_path.glob(".*"))

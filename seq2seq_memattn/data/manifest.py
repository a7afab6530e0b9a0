"""The format of data directories: data files, and a `manifest.json` that describes them.

The manifest is written last, so a directory with a manifest is complete. Lengths are in tokens and
include the end token.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from seq2seq_memattn.text.files import open_output
from seq2seq_memattn.text.form import TextForm

FORMAT_VERSION = 1
MANIFEST_NAME = "manifest.json"
FILE_FORMATS = ("text", "npy")

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class DataFile:
    """One file of a split.

    Args:
        role: "source" or "target" for text; "examples" for shards of token ids of both sides.
        path: path relative to the data directory, with `/` between folders.
        num_bytes: size on disk.
        sha256: checksum of the bytes on disk, in hexadecimal.
    """

    role: str
    path: str
    num_bytes: int
    sha256: str

    def __post_init__(self) -> None:
        path = PurePosixPath(self.path)
        if not self.path or path.is_absolute() or ".." in path.parts:
            raise ValueError(f"path: expected one inside the data directory, got {self.path!r}")


@dataclasses.dataclass(frozen=True)
class Split:
    """One part of the data, such as "train".

    Args:
        file_format: "text" (one example per line, one file per side) or "npy" (shards of ids,
            see `TokenPairs`; the split may also list its text, which scores need).
        files: the files; files with the same role are read one after the other.
        num_examples: pairs of source and target.
        max_source_length: longest source, in tokens including the end token.
        max_target_length: longest target, in tokens including the end token.
        num_target_tokens: tokens of all targets, including the end tokens.
        left_out: for each filter, by name, the number of pairs of the corpus that it removed from
            the split.
    """

    file_format: str
    files: tuple[DataFile, ...]
    num_examples: int
    max_source_length: int
    max_target_length: int
    num_target_tokens: int
    left_out: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.file_format not in FILE_FORMATS:
            raise ValueError(
                f"file_format: expected one of {FILE_FORMATS}, got {self.file_format!r}"
            )

    def files_of(self, role: str) -> tuple[DataFile, ...]:
        """Returns the files of one role; raises ValueError if there is none."""
        files = tuple(file for file in self.files if file.role == role)
        if not files:
            raise ValueError(f"files: expected one with the role {role!r}, got none")
        return files


@dataclasses.dataclass(frozen=True)
class Manifest:
    """What a data directory holds and how it was made.

    Args:
        task: name of the preparation, such as "copy_task".
        source_vocabulary: dict for `vocabulary_from_dict`.
        target_vocabulary: the same for the target side.
        splits: the splits by name: "train", "valid" and any test sets.
        options: the options of the preparation, as JSON values.
        versions: versions of this package and of the others that shaped the data.
        text_form: dict of a `TextForm`; empty if the data are not text.
    """

    task: str
    source_vocabulary: Mapping[str, Any]
    target_vocabulary: Mapping[str, Any]
    splits: Mapping[str, Split]
    options: Mapping[str, Any]
    versions: Mapping[str, str]
    text_form: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        _make(TextForm.from_dict, {"values": dict(self.text_form)}, "text_form")

    def split(self, name: str) -> Split:
        """Returns a split by name; the ValueError for an unknown name lists the known ones."""
        if name not in self.splits:
            raise ValueError(f"split: expected one of {sorted(self.splits)}, got {name!r}")
        return self.splits[name]


def describe_file(directory: Path, path: str, role: str) -> DataFile:
    """Returns the `DataFile` of a file that is on disk; `path` is relative to `directory`."""
    file = directory / path
    return DataFile(role, path, file.stat().st_size, sha256_of(file))


def verify_file(directory: Path, file: DataFile) -> None:
    """Raises ValueError if a file is missing or differs from its checksum in the manifest."""
    path = directory / file.path
    _check_exists(path)
    found = sha256_of(path)
    if found != file.sha256:
        raise ValueError(
            f"{path}: changed since it was prepared: expected sha256 {file.sha256}, got {found}"
        )


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Writes `manifest.json` atomically; call it when all other files are in place."""
    content = {"format_version": FORMAT_VERSION, **dataclasses.asdict(manifest)}
    with open_output(directory / MANIFEST_NAME) as stream:
        json.dump(content, stream, indent=2, allow_nan=False)
        stream.write("\n")


def read_manifest(directory: Path | str, check_files: bool = True) -> Manifest:
    """Reads `manifest.json` and checks that its files exist and have the listed sizes.

    Args:
        directory: the data directory.
        check_files: False if only the manifest was copied, as in a run directory.

    Returns:
        The manifest.

    Raises:
        ValueError: if the manifest is missing, is not JSON, has another format version, or has a
            missing or wrong field, or if a data file is missing or has another size. The message
            is one line that names the file and the field.
    """
    path = Path(directory) / MANIFEST_NAME
    content = _read_json(path)
    version = content.pop("format_version", None)
    if version != FORMAT_VERSION:
        raise ValueError(f"{path}: format_version: expected {FORMAT_VERSION}, got {version!r}")
    try:
        manifest = _manifest_from_json(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    for split in manifest.splits.values() if check_files else ():
        for file in split.files:
            _check_size(Path(directory) / file.path, file.num_bytes)
    return manifest


def _read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object from a file; every failure is a ValueError that names the file."""
    if not path.parent.is_dir():
        raise ValueError(f"{path.parent}: no such data directory")
    if not path.is_file():
        raise ValueError(f"{path}: no such file; is {path.parent} a prepared data directory?")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # not UTF-8, or not JSON
        raise ValueError(f"{path}: expected JSON, got: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content


def _manifest_from_json(content: dict[str, Any]) -> Manifest:
    """Makes the records; ValueError names a field that is missing, unknown or of a wrong type."""
    _check_fields(Manifest, content, "")
    splits = {}
    for name, split in content["splits"].items():
        where = f"splits.{name}"
        _check_fields(Split, split, f"{where}.")
        files = []
        for i, file in enumerate(split["files"]):
            _check_fields(DataFile, file, f"{where}.files[{i}].")
            files.append(_make(DataFile, file, f"{where}.files[{i}]"))
        splits[name] = _make(Split, split | {"files": tuple(files)}, where)
    return Manifest(**(content | {"splits": splits}))


def _make(record: Callable[..., T], values: dict[str, Any], where: str) -> T:
    """Calls the constructor of a record; a ValueError also says where in the file the value is."""
    try:
        return record(**values)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _check_fields(record: type, values: Any, prefix: str) -> None:
    """Compares the names and JSON types of a dict's values with the fields of a dataclass.

    A field with a default may be missing: it was added after the first version of the format.
    """
    if not isinstance(values, dict):
        name = prefix.removesuffix(".")
        raise ValueError(f"{name}: expected a JSON object, got {type(values).__name__}")
    fields = {field.name: field for field in dataclasses.fields(record)}
    for name in sorted(values.keys() - fields.keys()):
        raise ValueError(f"{prefix}{name}: unknown field")
    for name, field in fields.items():
        expected = _JSON_TYPES[field.type]
        if name not in values:
            if field.default_factory is not dataclasses.MISSING:
                continue
            raise ValueError(f"{prefix}{name}: missing")
        # bool is a subclass of int, but true is not a count.
        if not isinstance(values[name], expected) or isinstance(values[name], bool):
            raise ValueError(
                f"{prefix}{name}: expected {expected.__name__}, got {values[name]!r:.60}"
            )


_JSON_TYPES: dict[Any, type] = {
    str: str,
    int: int,
    tuple[DataFile, ...]: list,
    Mapping[str, Any]: dict,
    Mapping[str, int]: dict,
    Mapping[str, Split]: dict,
    Mapping[str, str]: dict,
}


def _check_exists(path: Path) -> None:
    if not path.is_file():
        raise ValueError(f"{path}: no such file, though {MANIFEST_NAME} lists it")


def _check_size(path: Path, num_bytes: int) -> None:
    """Raises ValueError if a data file is missing or its size differs from the manifest."""
    _check_exists(path)
    found = path.stat().st_size
    if found != num_bytes:
        raise ValueError(
            f"{path}: changed since it was prepared: expected {num_bytes} bytes, got {found}"
        )


def sha256_of(path: Path) -> str:
    """Returns the checksum of a file in hexadecimal."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

"""Vocabularies that are stored in a file of the data directory."""

import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, ClassVar

from seq2seq_memattn.checks import check_file_name
from seq2seq_memattn.vocabulary.base import Vocabulary


class FileVocabulary(Vocabulary):
    """A vocabulary made from the bytes of one file, whose name and checksum are in its dict.

    A subclass also defines `KIND`, the name of its kind.

    Args:
        content: the bytes of the file.
        file: name of the file in the data directory.

    Raises:
        ValueError: if the name has directories.
    """

    KIND: ClassVar[str]

    def __init__(self, content: bytes, file: str) -> None:
        check_file_name("file", file)
        self.content = content
        self.file = file

    def to_dict(self) -> dict[str, Any]:
        sha256 = hashlib.sha256(self.content).hexdigest()
        return {"kind": self.KIND, "file": self.file, "sha256": sha256}


def read_content(spec: Mapping[str, Any], directory: Path) -> tuple[bytes, str]:
    """Reads the file of a vocabulary and compares it with the checksum of its dict.

    Args:
        spec: what `FileVocabulary.to_dict` returned.
        directory: the data directory.

    Returns:
        The bytes of the file, and its name.

    Raises:
        ValueError: if the dict has no name or checksum, or the file is missing or has another
            checksum.
    """
    for name in ("file", "sha256"):
        if not isinstance(spec.get(name), str):
            raise ValueError(f"vocabulary: {name}: expected a string, got {spec.get(name)!r}")
    path = directory / PurePath(spec["file"]).name
    if not path.is_file():
        raise ValueError(f"{path}: no such file, expected a vocabulary of {spec['kind']}")
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != spec["sha256"]:
        raise ValueError(
            f"{path}: not the vocabulary that the data were prepared with: expected sha256 "
            f"{spec['sha256']}, got {found}"
        )
    return content, spec["file"]

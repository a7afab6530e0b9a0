"""Data directories of a few lines of text."""

import dataclasses
from pathlib import Path
from typing import Any

from seq2seq_memattn.data.manifest import Manifest, Split, describe_file, write_manifest
from seq2seq_memattn.data.splits import SplitData
from seq2seq_memattn.vocabulary import SymbolVocabulary

LINES = ["b a", "", "a b b a a", "c", "a a a", "c b", "b b b b b b b b b b", "c c"]


def make_directory(
    directory: Path, source: list[str] = LINES, target: list[str] = LINES, **changes: object
) -> Path:
    """Makes a data directory of the given lines; `changes` replace fields of its split."""
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


def open_lines(directory: Path, batch_size: int = 3, **options: Any) -> SplitData:
    """Opens the split of `make_directory`."""
    return SplitData(directory, "train", batch_size, **options)

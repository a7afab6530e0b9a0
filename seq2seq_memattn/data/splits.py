"""One way to open a split, whatever its files are."""

from pathlib import Path
from typing import Any

from seq2seq_memattn.data.copy_task import CopyTaskData
from seq2seq_memattn.data.manifest import read_manifest
from seq2seq_memattn.data.text import TextData


def open_split(
    directory: Path | str, split: str, *arguments: Any, **options: Any
) -> CopyTaskData | TextData:
    """Opens a split of a data directory.

    Args:
        directory: the data directory.
        split: name of the split.
        arguments, options: those that `CopyTaskData` and `TextData` have in common.

    Returns:
        `TextData` where the split is shards of ids, `CopyTaskData` where it is text.

    Raises:
        ValueError: if the directory or the split is not as it should be.
    """
    is_text = read_manifest(directory).split(split).file_format == "text"
    kind: type[CopyTaskData] | type[TextData] = CopyTaskData if is_text else TextData
    return kind(directory, split, *arguments, **options)

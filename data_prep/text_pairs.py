"""Reads two files of parallel text side by side."""

import os
from collections.abc import Callable, Iterator
from itertools import zip_longest

from seq2seq_memattn.data.text_files import STANDARD_STREAM, iterate_bytes


def check_input(name: str, path: str) -> None:
    """Raises ValueError if an input file is not there; `name` is that of its option.

    Standard input is refused: the text is read more than once.
    """
    if not path or path == STANDARD_STREAM:
        raise ValueError(f"{name}: expected the name of a file, got {path!r}")
    if not os.path.isfile(path):
        raise ValueError(f"{name}: {path}: no such file")


def iterate_pairs(
    source: str, target: str, on_read: Callable[[int], None] | None = None
) -> Iterator[tuple[bytes, bytes]]:
    """Yields the lines of two files, pair by pair; see `iterate_bytes`.

    Raises:
        ValueError: if a file cannot be read, or one has more lines than the other: after the last
            pair, with the numbers of lines of both.
    """
    lines = zip_longest(iterate_bytes(source, on_read), iterate_bytes(target))
    for number, (source_line, target_line) in enumerate(lines):
        if source_line is None or target_line is None:
            longer = number + 1 + sum(1 for _ in lines)
            counts = (longer, number) if target_line is None else (number, longer)
            raise ValueError(
                f"{source} and {target}: expected as many lines in both, "
                f"got {counts[0]} and {counts[1]}"
            )
        yield source_line, target_line


def is_empty(line: str) -> bool:
    """Returns whether a line has nothing but spaces."""
    return not line.strip(" ")

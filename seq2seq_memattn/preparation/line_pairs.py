"""Reads two files of parallel text side by side."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import zip_longest

from seq2seq_memattn.text.files import STANDARD_STREAM, iterate_bytes

# The escapes of the Moses scripts. The ampersand comes last because all escapes begin with one.
ESCAPES = {
    b"&#124;": b"|",
    b"&lt;": b"<",
    b"&gt;": b">",
    b"&apos;": b"'",
    b"&quot;": b'"',
    b"&#91;": b"[",
    b"&#93;": b"]",
    b"&amp;": b"&",
}


def check_input(name: str, path: str) -> None:
    """Raises ValueError if an input file does not exist; `name` is the name of its option.

    Standard input is refused, because the text is read more than once.
    """
    if not path or path == STANDARD_STREAM:
        raise ValueError(f"{name}: expected the name of a file, got {path!r}")
    if not os.path.exists(path):
        raise ValueError(f"{name}: {path}: no such file")
    if not os.path.isfile(path):  # a directory or a pipe
        raise ValueError(f"{name}: {path}: expected a file on disk, because it is read repeatedly")


def iterate_pairs(
    pairs: Iterable[tuple[str, str]],
    unescape: bool = False,
    on_read: Callable[[int], None] | None = None,
) -> Iterator[tuple[bytes, bytes]]:
    """Yields pairs of source and target lines from pairs of files; see `iterate_bytes`.

    Args:
        pairs: source and target files, read one pair after the other.
        unescape: whether to undo the escapes of the Moses scripts.
        on_read: called from time to time with the number of bytes read from the source files; for
            compressed files, these are compressed bytes.

    Raises:
        ValueError: if a file cannot be read, or if the two files of a pair differ in their number
            of lines; this is raised after the last common line, with both numbers.
    """
    read_before = 0
    for source, target in pairs:
        report = partial(_report, on_read, read_before) if on_read else None
        for pair in _iterate_pair(source, target, report):
            yield (_unescape(pair[0]), _unescape(pair[1])) if unescape else pair
        read_before += os.path.getsize(source)


def _report(on_read: Callable[[int], None], before: int, position: int) -> None:
    on_read(before + position)


def _iterate_pair(
    source: str, target: str, on_read: Callable[[int], None] | None
) -> Iterator[tuple[bytes, bytes]]:
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


def _unescape(line: bytes) -> bytes:
    if b"&" in line:
        for escape, character in ESCAPES.items():
            line = line.replace(escape, character)
    return line


def is_empty(line: str) -> bool:
    """Returns whether a line is empty or has only spaces."""
    return not line.strip(" ")

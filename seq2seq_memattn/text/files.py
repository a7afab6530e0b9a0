"""Reads and writes UTF-8 text files: plain, `.gz`, or `-` for standard input and output.

Only a newline, with or without carriage returns before it, ends a line: U+00A0, U+2028 and a lone
carriage return stay inside a line. A byte order mark at the start of a file is left out.
"""

import contextlib
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, TextIO, cast

BYTE_ORDER_MARK = "\ufeff".encode()
STANDARD_STREAM = "-"  # stands for standard input or output
LINES_PER_REPORT = 4096  # lines between two calls of `on_read`
MOST_LINKS = 40  # symbolic links followed in a row, as in Linux
PID_DIGITS = 7  # process ids are at most 2**22
READ_BYTES = 1 << 18  # decompressed at a time; without such a buffer gzip's readline is slow


def read_lines(path: str | os.PathLike[str]) -> list[str]:
    """Returns the lines of a text file without their newlines; see `iterate_lines`."""
    return list(iterate_lines(path))


def iterate_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yields the lines of a text file without their newlines, as str; see `iterate_bytes`."""
    return (line.decode("utf-8") for line in iterate_bytes(path))


def iterate_bytes(
    path: str | os.PathLike[str], on_read: Callable[[int], None] | None = None
) -> Iterator[bytes]:
    """Yields the lines of a text file without their newlines, as the bytes of valid UTF-8.

    Args:
        path: a text file, a gzip file if the name ends in `.gz`, or `-` for standard input.
        on_read: called from time to time with the number of bytes of the file read so far; for a
            gzip file, compressed bytes.

    Yields:
        The bytes of each line. A newline at the end of the file does not start another line.

    Raises:
        ValueError: if the file is missing, a directory, empty, damaged or not UTF-8. The message
            names the file and, if it is not UTF-8, the line and the byte.
    """
    name = display_name(path)
    start = 0  # bytes of the decompressed file before the line
    with _open_input(path) as (stream, file):
        for number, line in enumerate(_raw_lines(stream, name), 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{name}: line {number}: expected UTF-8, got byte 0x{line[error.start]:02x} "
                    f"at byte {start + error.start} of the file"
                ) from None
            text = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
            yield text.removesuffix(b"\n").rstrip(b"\r")
            start += len(line)
            if on_read is not None and number % LINES_PER_REPORT == 0:
                on_read(file.tell())
    if not start:
        raise ValueError(f"{name}: expected lines of text, got an empty file")


@contextlib.contextmanager
def open_output(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Opens a text file for writing; the file appears complete or not at all.

    The text goes to a temporary file in the same directory. This file replaces `path` when the
    block ends, and is removed if the block raises. Standard output, pipes and devices are written
    directly.

    Args:
        path: the file, compressed with gzip if its name ends in `.gz`, or `-` for standard output.

    Yields:
        A UTF-8 text stream that does not translate newlines.
    """
    if os.fspath(path) == STANDARD_STREAM:
        with naming_errors("standard output"), _text_stream(sys.stdout.buffer) as stream:
            yield stream
        return
    check_output(path)
    with (
        naming_errors(os.fspath(path)),
        open_binary_output(Path(path)) as binary,
        _packed(binary, Path(path).suffix == ".gz") as content,
        _text_stream(content) as stream,
    ):
        yield stream


def check_output(path: str | os.PathLike[str], *sources: str | os.PathLike[str]) -> None:
    """Raises ValueError if a file cannot be written or is an input; call it before long work.

    Args:
        path: the file, or `-` for standard output.
        sources: input files; `path` must not be one of them.
    """
    name = os.fspath(path)
    if name == STANDARD_STREAM:
        if sys.stdout is None:
            raise ValueError("standard output: expected an open stream")
        return
    file = Path(path).resolve()
    if file.is_dir():
        raise ValueError(f"{name}: expected a file to write, got a directory")
    if not file.parent.is_dir():
        raise ValueError(f"{name}: expected an existing directory to write it in")
    if _is_replaced(Path(path)) and not os.access(file.parent, os.W_OK):
        raise ValueError(f"{name}: expected a directory that can be written to")
    for source in sources:
        if Path(path).is_file() and Path(source).is_file() and Path(path).samefile(source):
            raise ValueError(f"{name}: is an input and would be lost; expected another output file")


@contextlib.contextmanager
def atomic_binary(path: Path) -> Iterator[BinaryIO]:
    """Opens a temporary file beside `path`, which replaces `path` when the block ends.

    The temporary file is synced to disk before it replaces `path`. If the block raises, the
    temporary file is removed and `path` stays as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with naming_errors(str(path), str(temporary)), open(temporary, "wb") as binary:
            yield binary
            binary.flush()
            os.fsync(binary.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is the one to report
            temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def remove_leftovers(path: Path, is_shared: bool = False) -> None:
    """Removes temporary files that killed processes left in a directory.

    Call this before this process writes its first file there: its own temporary files would be
    removed, too.

    Args:
        path: the directory.
        is_shared: whether other processes may be writing there. If so, the temporary files of other
            running processes are kept.
    """
    for leftover in path.glob(".*.*.tmp"):
        pid = leftover.name.split(".")[-2]
        if not (pid.isdecimal() and len(pid) <= PID_DIGITS and leftover.is_file()):
            continue  # not one of our temporary files
        if not (is_shared and _is_another_process(int(pid))):
            leftover.unlink(missing_ok=True)


def _is_another_process(pid: int) -> bool:
    """Whether another process with this id is running on this machine.

    Ids are reused, in containers after a short time. If a file's name has the id of this process
    before this process has written anything, the file is from an earlier process.
    """
    if pid == os.getpid():
        return False
    with contextlib.suppress(PermissionError):  # raised if it exists but belongs to another user
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True


def sync_directory(path: Path) -> None:
    """Waits until a directory's entries are on disk; renames then survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def display_name(path: str | os.PathLike[str]) -> str:
    """Returns the name of an input file for messages."""
    return "standard input" if os.fspath(path) == STANDARD_STREAM else os.fspath(path)


def open_binary_output(path: Path) -> contextlib.AbstractContextManager[BinaryIO]:
    """Opens a file for atomic writing, but pipes and devices directly: a rename would destroy them.

    If the path is a symbolic link, the link's target is replaced, not the link.
    """
    if _is_replaced(path):
        return atomic_binary(path.resolve())
    descriptor = _descriptor(path)
    # A duplicated descriptor keeps its position; opening the path again would truncate the file.
    return open(path if descriptor is None else os.dup(descriptor), "wb")


def _is_replaced(path: Path) -> bool:
    """Whether a new file will replace `path`; false for pipes, devices and open descriptors."""
    is_file = not path.exists() or stat.S_ISREG(path.stat().st_mode)
    return is_file and _descriptor(path) is None


def _descriptor(path: Path) -> int | None:
    """This process's file descriptor behind a path such as /dev/stdout or /dev/fd/63, or None."""
    own = Path(f"/proc/{os.getpid()}/fd")
    path = path.absolute()
    for _ in range(MOST_LINKS):
        if path.name.isdecimal() and path.parent.resolve() == own:
            return int(path.name)
        if not path.is_symlink():
            break
        path = path.parent / os.readlink(path)
    return None


@contextlib.contextmanager
def naming_errors(name: str, temporary: str | None = None) -> Iterator[None]:
    """Adds a file's name to an OSError that names no file, such as the one for a full disk.

    Args:
        name: name of the file.
        temporary: name of a temporary file; in an error, it is replaced by `name`.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, temporary):
            raise
        raise OSError(error.errno, error.strerror, name) from error


@contextlib.contextmanager
def _standard_input() -> Iterator[BinaryIO]:
    """Opens standard input as a separate file object.

    A thread that waits for `sys.stdin` itself would keep Python from exiting cleanly.
    """
    if sys.stdin is None:
        raise ValueError("standard input: expected lines of text, but it is closed")
    try:
        descriptor = os.dup(sys.stdin.fileno())
    except (AttributeError, OSError):  # `sys.stdin` was replaced by another object
        yield sys.stdin.buffer
        return
    with open(descriptor, "rb") as stream:
        yield stream


@contextlib.contextmanager
def _open_input(path: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Opens a file, gzip file or standard input for reading bytes; leaves standard input open.

    Yields:
        The stream of the decompressed bytes, and the file itself.
    """
    if os.fspath(path) == STANDARD_STREAM:
        with _standard_input() as stream:
            yield stream, stream
        return
    if not os.path.exists(path):
        raise ValueError(f"{os.fspath(path)}: no such file")
    if os.path.isdir(path):
        raise ValueError(f"{os.fspath(path)}: expected a file, got a directory")
    with open(path, "rb") as file:
        if not os.fspath(path).endswith(".gz"):
            yield file, file
            return
        with gzip.open(file, "rb") as unpacked:
            buffered = io.BufferedReader(cast(io.RawIOBase, unpacked), READ_BYTES)
            yield cast(BinaryIO, buffered), file


def _raw_lines(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """Yields lines as bytes; if they cannot be read, the error names the file."""
    try:
        with naming_errors(name):
            yield from stream  # splits at b"\n" alone
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{name}: expected a whole gzip file, got: {error}") from None


@contextlib.contextmanager
def _text_stream(binary: BinaryIO) -> Iterator[TextIO]:
    """Yields a UTF-8 text stream over a binary one, which is flushed at the end and left open."""
    stream = io.TextIOWrapper(binary, encoding="utf-8", newline="\n")
    try:
        yield stream
        stream.flush()
    finally:
        stream.detach()


@contextlib.contextmanager
def _packed(binary: BinaryIO, packed: bool) -> Iterator[BinaryIO]:
    """Yields the stream itself, or one that compresses into it; equal text gives equal bytes."""
    if not packed:
        yield binary
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=binary, mtime=0) as content:
        yield cast(BinaryIO, content)

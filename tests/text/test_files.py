import errno
import gzip
import io
import os
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest

from seq2seq_memattn.text.files import (
    atomic_binary,
    check_output,
    iterate_bytes,
    iterate_lines,
    open_binary_output,
    open_output,
    read_lines,
)
from tests.disks import small_disk_of


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


def files_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


# Reading


@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_only_the_newline_splits(name: str, tmp_path: Path) -> None:
    lines = ["a\u00a0b", "c\u2028d", "e\rf", "g\x0bh\x0ci\x85j", "", "\rk", "ü"]
    path = write(tmp_path / name, ("\n".join(lines) + "\n").encode())
    assert read_lines(path) == lines


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"\n", [""]),
        (b"\n\n", ["", ""]),
        (b"a", ["a"]),
        (b"a\nb", ["a", "b"]),
        (b"a\n\n", ["a", ""]),
    ],
)
def test_a_newline_at_the_end_begins_no_line(
    content: bytes, lines: list[str], tmp_path: Path
) -> None:
    assert read_lines(write(tmp_path / "text", content)) == lines


@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_line_ends_and_byte_order_marks_of_windows_are_left_out(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, b"\xef\xbb\xbfa\r\n\r\nb\rc\r\r\n\xef\xbb\xbfd")
    assert read_lines(path) == ["a", "", "b\rc", "\ufeffd"]


def test_a_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(b"a\rb\nc\n")))
    assert read_lines("-") == ["a\rb", "c"]


def test_standard_input_is_named_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO()))
    with pytest.raises(ValueError, match="^standard input: expected lines of text"):
        read_lines("-")


@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_bytes_that_are_not_utf8_are_located(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, "ü\nok\nab".encode() + b"\xff\n")
    with pytest.raises(ValueError) as caught:
        read_lines(path)
    expected = f"{path}: line 3: expected UTF-8, got byte 0xff at byte 8 of the file"
    assert str(caught.value) == expected


@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_an_empty_file_is_an_error(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, b"")
    with pytest.raises(ValueError, match="text.txt.*: expected lines of text, got an empty file"):
        read_lines(path)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="absent.txt: no such file"):
        read_lines(tmp_path / "absent.txt")


def test_a_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a file, got a directory"):
        read_lines(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"plain text", gzip.compress(b"a\n" * 1000, mtime=0)[:-9], gzip.compress(b"a", mtime=0)[:12]],
    ids=["plain", "cut in the data", "cut in the header"],
)
def test_a_damaged_gzip_file_is_an_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="text.gz: expected a whole gzip file, got: "):
        read_lines(path)


def test_lines_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    lines = iterate_lines(write(tmp_path / "text", b"first\n\xff\n"))
    assert next(lines) == "first"
    with pytest.raises(ValueError, match="line 2"):
        next(lines)


# Writing


@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_what_was_written_is_read_back(name: str, tmp_path: Path) -> None:
    lines = ["a\u00a0b", "c\u2028d", "e\rf", "", "ü"]
    with open_output(tmp_path / name) as stream:
        stream.writelines(line + "\n" for line in lines)
    assert read_lines(tmp_path / name) == lines
    assert files_in(tmp_path) == [name]


def test_equal_text_gives_equal_gzip_files(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        with open_output(tmp_path / name) as stream:
            stream.write("text\n")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_nothing_is_seen_before_the_block_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "text", b"old")
    with open_output(path) as stream:
        stream.write("new")
        stream.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_an_error_leaves_the_old_file_and_nothing_else(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), open_output(path) as stream:
        stream.write("half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert files_in(tmp_path) == [name]


def test_a_dash_writes_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with open_output("-") as stream:
        stream.write("ü\r\u2028\n")
    print("still open")
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == "ü\r\u2028\nstill open\n".encode()


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match=r"absent/text: expected an existing directory"),
        open_output(tmp_path / "absent" / "text"),
    ):
        pass


def test_a_file_that_is_read_is_not_written(tmp_path: Path) -> None:
    text = write(tmp_path / "text", b"one")
    (tmp_path / "link").symlink_to(text)
    with pytest.raises(ValueError, match="link: is an input and would be lost"):
        check_output(tmp_path / "link", "-", text)
    check_output(tmp_path / "other", text)
    check_output("-", text)
    check_output(os.devnull, os.devnull)


def test_what_could_not_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=f"{tmp_path}: expected a file to write, got a directory"):
        check_output(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ValueError, match="text: expected a directory that can be written to"):
        check_output(tmp_path / "text")
    check_output(os.devnull)


def test_a_device_is_written_and_not_replaced() -> None:
    with open_output(os.devnull) as stream:
        stream.write("text")
    with open_binary_output(Path(os.devnull)) as binary, zipfile.ZipFile(binary, "w") as archive:
        archive.writestr("name", "text")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_what_cannot_be_written_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(OSError, match=f"No space left.*{name}'$") as raised,
        open_output(tmp_path / name) as stream,
    ):
        stream.write("text")
    assert raised.value.filename == str(tmp_path / name)
    assert files_in(tmp_path) == []
    if Path("/dev/full").exists():
        with (
            pytest.raises(OSError, match="No space left.*'/dev/full'$"),
            open_output("/dev/full") as stream,
        ):
            stream.write("text")


@small_disk_of(2**16)
def test_where_nothing_can_be_written_the_file_is_named_and_not_the_temporary_one(
    small_disk: Path,
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with (
        pytest.raises(OSError, match="Read-only file system") as raised,
        atomic_binary(small_disk / "text"),
    ):
        pytest.fail("the disk can be written")
    assert raised.value.filename == str(small_disk / "text")


def test_a_link_is_compressed_by_its_own_name(tmp_path: Path) -> None:
    for name, target in (("text.gz", "store"), ("text", "store.gz")):
        (tmp_path / name).symlink_to(tmp_path / target)
        with open_output(tmp_path / name) as stream:
            stream.write("new")
        assert read_lines(tmp_path / name) == ["new"]


def test_standard_output_under_its_name_is_written_where_it_is(tmp_path: Path) -> None:
    write(tmp_path / "all", b"first\n")
    program = (
        "from seq2seq_memattn.text.files import open_output\n"
        "with open_output('/dev/stdout') as stream: stream.write('second\\n')\n"
        "print('third')"
    )
    command = [sys.executable, "-c", program]
    with open(tmp_path / "all", "ab") as all_lines:
        subprocess.run(command, stdout=all_lines, check=True)
    assert read_lines(tmp_path / "all") == ["first", "second", "third"]
    with open(tmp_path / "all", "wb") as new:
        subprocess.run(command, stdout=new, check=True)
    assert read_lines(tmp_path / "all") == ["second", "third"]
    run = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert run.stdout == b"second\nthird\n"


def test_a_symbolic_link_goes_on_pointing_at_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "text", b"old")
    (tmp_path / "link").symlink_to(path)
    with open_output(tmp_path / "link") as stream:
        stream.write("new")
    assert (tmp_path / "link").is_symlink()
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_reading_bytes_tells_how_far_the_file_has_been_read(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"text{suffix}"
    content = "".join(f"line {i} é\n" for i in range(200_000)).encode()
    path.write_bytes(gzip.compress(content) if suffix else content)
    positions: list[int] = []
    lines = list(iterate_bytes(path, positions.append))
    assert b"".join(line + b"\n" for line in lines) == content
    assert len(positions) > 10
    assert positions == sorted(positions)
    assert 0.9 * path.stat().st_size < positions[-1] <= path.stat().st_size


def test_a_closed_standard_output_is_refused_before_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_output("-")
    monkeypatch.setattr("sys.stdout", None)
    with pytest.raises(ValueError, match="^standard output: expected an open stream$"):
        check_output("-")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file of Linux")
def test_a_file_that_cannot_be_read_is_named() -> None:
    with pytest.raises(OSError, match="Input/output error: '/proc/self/mem'"):
        next(iterate_lines("/proc/self/mem"))

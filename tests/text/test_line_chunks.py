"""Lines are read in chunks from files and from pipes."""

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seq2seq_memattn.text.line_chunks import is_stream, line_chunks


class Pipe:
    """A pipe and its writing end."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()
        self.path = Path(f"/dev/fd/{self._reading}")
        self._file = os.fdopen(writing, "wb", buffering=0)

    def write(self, content: bytes) -> None:
        self._file.write(content)

    def end(self) -> None:
        self._file.close()

    def close(self) -> None:
        self._file.close()
        os.close(self._reading)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


@pytest.mark.parametrize(("size", "expected"), [(2, [2, 2, 1]), (5, [5]), (9, [5])])
def test_chunks_of_a_file_are_full(tmp_path: Path, size: int, expected: list[int]) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("a\n\nb\u2028c\nd\ne", encoding="utf-8")
    chunks = list(line_chunks(path, size))
    assert [len(chunk) for chunk in chunks] == expected
    assert sum(chunks, []) == ["a", "", "b\u2028c", "d", "e"]
    assert not is_stream(path)


def test_a_line_of_a_pipe_is_there_before_the_next_is_written(pipe: Pipe) -> None:
    assert is_stream(pipe.path)
    chunks = line_chunks(pipe.path, 100)
    for line in ("first", "", "third"):
        pipe.write(f"{line}\n".encode())
        assert next(chunks) == [line]
    pipe.write(b"x\ny")
    pipe.end()
    assert sum(chunks, []) == ["x", "y"]  # in one or two chunks


def test_chunks_of_a_pipe_are_no_larger_than_asked_for(pipe: Pipe) -> None:
    pipe.write(b"".join(b"%d\n" % i for i in range(1000)))
    chunks = line_chunks(pipe.path, 30)
    first = next(chunks)
    pipe.end()
    found = [first, *chunks]
    assert max(map(len, found)) <= 30
    assert sum(found, []) == [str(i) for i in range(1000)]


def test_lines_before_what_is_no_text_are_given_first(pipe: Pipe) -> None:
    pipe.write(b"a\nb\nc\xff\nd\n")
    pipe.end()
    found = []
    with pytest.raises(ValueError, match="line 3: expected UTF-8, got byte 0xff"):
        for chunk in line_chunks(pipe.path, 100):
            found += chunk
    assert found == ["a", "b"]


def test_an_empty_pipe_is_an_error(pipe: Pipe) -> None:
    chunks = line_chunks(pipe.path, 100)
    pipe.end()
    with pytest.raises(ValueError, match="expected lines of text, got an empty file"):
        next(chunks)


def test_standard_input_is_a_stream_unless_a_file_is_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("a\nb\nc\n")
    with open(path) as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert not is_stream("-")
        assert list(line_chunks("-", 2)) == [["a", "b"], ["c"]]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\n")))
    assert is_stream("-")
    assert sum(line_chunks("-", 2), []) == ["a", "b"]


def test_a_file_that_is_not_there_is_no_stream(tmp_path: Path) -> None:
    assert not is_stream(tmp_path / "nothing")
    assert not is_stream(tmp_path)
    with pytest.raises(ValueError, match="nothing: no such file"):
        next(line_chunks(tmp_path / "nothing", 2))

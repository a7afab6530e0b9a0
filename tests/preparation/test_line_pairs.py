import gzip
from pathlib import Path

import pytest

from seq2seq_memattn.preparation.line_pairs import check_input, is_empty, iterate_pairs


def write(path: Path, content: bytes) -> str:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


def test_lines_are_paired_and_only_the_newline_splits(tmp_path: Path) -> None:
    source = write(tmp_path / "s.gz", "a\u00a0b\n\u2028c\n\nd\re".encode())
    target = write(tmp_path / "t", b"1\n2\n3\n4\n")
    assert [(s.decode(), t.decode()) for s, t in iterate_pairs([(source, target)])] == [
        ("a\u00a0b", "1"),
        ("\u2028c", "2"),
        ("", "3"),
        ("d\re", "4"),
    ]


@pytest.mark.parametrize(("lines", "counts"), [((3, 5), "3 and 5"), ((6, 2), "6 and 2")])
def test_sides_of_different_length_are_an_error_with_both_counts(
    lines: tuple[int, int], counts: str, tmp_path: Path
) -> None:
    source = write(tmp_path / "s", b"x\n" * lines[0])
    target = write(tmp_path / "t", b"y\n" * lines[1])
    with pytest.raises(ValueError, match=f"s and .*t: expected as many lines .* got {counts}$"):
        list(iterate_pairs([(source, target)]))


def test_a_missing_input_is_named_with_its_option(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="^valid_source: .*absent: no such file"):
        check_input("valid_source", str(tmp_path / "absent"))
    with pytest.raises(ValueError, match="^train_source: .*: expected a file on disk"):
        check_input("train_source", str(tmp_path))
    for name in ("", "-"):
        with pytest.raises(ValueError, match="^train_target: expected the name of a file, got"):
            check_input("train_target", name)


def test_a_line_of_spaces_is_empty_and_one_of_other_white_space_is_not() -> None:
    assert is_empty("")
    assert is_empty("   ")
    assert not is_empty("\u00a0")
    assert not is_empty("\r")


def test_files_are_read_one_after_the_other_and_progress_counts_them_all(tmp_path: Path) -> None:
    lines = [b"%d\n" % i for i in range(10_000)]
    first = write(tmp_path / "a", b"".join(lines)), write(tmp_path / "b", b"".join(lines))
    second = write(tmp_path / "c", b"x\n" * 5000), write(tmp_path / "d", b"y\n" * 5000)
    read: list[int] = []
    found = list(iterate_pairs([first, second], on_read=read.append))
    assert found[:10_000] == [(line[:-1], line[:-1]) for line in lines]
    assert found[10_000:] == [(b"x", b"y")] * 5000
    sizes = [Path(pair[0]).stat().st_size for pair in (first, second)]
    assert read == sorted(read)
    assert sizes[0] < read[-1] <= sum(sizes)


def test_escapes_of_moses_are_undone_where_asked_for(tmp_path: Path) -> None:
    line = (
        b"it &apos;s &quot; a &amp; b &quot; &lt; 3 &gt; 2 &#91; x &#124; y &#93; &amp;lt; &eacute;"
    )
    source = write(tmp_path / "s", line + b"\nplain\n")
    expected = b'it \'s " a & b " < 3 > 2 [ x | y ] &lt; &eacute;'
    assert list(iterate_pairs([(source, source)], unescape=True)) == [
        (expected, expected),
        (b"plain", b"plain"),
    ]
    assert next(iterate_pairs([(source, source)])) == (line, line)

import errno
import hashlib
import os
from pathlib import Path
from typing import NoReturn

import pytest

from seq2seq_memattn.preparation import download
from seq2seq_memattn.preparation.download import CHECKSUMS_NAME, fetch
from tests.preparation.web_server import serving

CONTENT = os.urandom(3_000_000)
CHECKSUM = hashlib.sha256(CONTENT).hexdigest()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def test_a_file_arrives_whole_with_its_checksum_noted_and_is_not_fetched_again(
    tmp_path: Path,
) -> None:
    with serving({"a/file.gz": CONTENT}) as server:
        for _ in range(2):
            fetch(f"{server.url}/a/file.gz", tmp_path / "file.gz", CHECKSUM)
        assert len(server.requests) == 1
    assert (tmp_path / "file.gz").read_bytes() == CONTENT
    assert names(tmp_path) == [CHECKSUMS_NAME, "file.gz"]
    assert (tmp_path / CHECKSUMS_NAME).read_text() == f"{CHECKSUM}  file.gz\n"


def test_a_cut_connection_is_taken_up_where_it_broke(tmp_path: Path) -> None:
    with serving({"file": CONTENT}) as server:
        server.cuts = [1_000_000] * 2
        fetch(f"{server.url}/file", tmp_path / "file", CHECKSUM, attempts=2, wait_seconds=0)
        ranges = [wanted for _, wanted in server.requests]
    assert ranges == ["", "bytes=1000000-", "bytes=2000000-"]
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_what_a_start_that_gave_up_had_is_kept_for_the_next(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with serving({"file": CONTENT}) as server:
        server.cuts = [700_000]
        with pytest.raises(OSError, match=r"ended after 700,000 of 3,000,000 bytes; 700,000 bytes"):
            fetch(f"{server.url}/file", path, attempts=1)
        assert not path.exists()
        fetch(f"{server.url}/file", path, CHECKSUM)
        assert server.requests[-1] == ("file", "bytes=700000-")
    assert path.read_bytes() == CONTENT


def test_a_whole_part_whose_checksum_was_not_taken_is_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    with serving({"file": CONTENT}) as server:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(download, "_check", interrupt)
            fetch(f"{server.url}/file", path)
        fetch(f"{server.url}/file", path, CHECKSUM, attempts=1)
        assert [wanted for _, wanted in server.requests] == ["", "bytes=3000000-"]
    assert path.read_bytes() == CONTENT
    assert names(tmp_path) == [CHECKSUMS_NAME, "file"]


def test_a_file_never_stands_there_without_its_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    with serving({"file": CONTENT}) as server:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(download.os, "replace", interrupt)
            fetch(f"{server.url}/file", path)
        assert not path.exists() and (tmp_path / CHECKSUMS_NAME).exists()
        fetch(f"{server.url}/file", path)
        path.write_bytes(b"damaged")
        with pytest.raises(ValueError, match="remove it to fetch it again"):
            fetch(f"{server.url}/file", path)


def test_a_part_that_is_longer_than_the_file_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with serving({"file": CONTENT}) as server:
        server.cuts = [700_000]
        with pytest.raises(OSError, match="ended after"):
            fetch(f"{server.url}/file", path, attempts=1)
        (tmp_path / "file.part").write_bytes(bytes(3_000_001))
        fetch(f"{server.url}/file", path, CHECKSUM, attempts=2, wait_seconds=0)
    assert path.read_bytes() == CONTENT


def test_a_server_that_never_gets_further_is_given_up(tmp_path: Path) -> None:
    with serving({"file": CONTENT}) as server:
        server.knows_ranges = False
        server.cuts = [1_000_000, 900_000] * 4
        with pytest.raises(OSError, match="ended after 900,000 of 3,000,000 bytes"):
            fetch(f"{server.url}/file", tmp_path / "file", attempts=4, wait_seconds=0)
        assert len(server.requests) == 4


def test_a_full_disk_is_no_failure_that_may_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def full(url: str, part: Path) -> None:
        tried.append(part)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(download, "_fetch_rest", full)
    with pytest.raises(OSError, match=r"http://x/file: .*No space left"):
        fetch("http://x/file", tmp_path / "file", wait_seconds=0)
    assert len(tried) == 1


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_file_that_changed_meanwhile_is_fetched_from_its_beginning(
    tmp_path: Path, knows_ranges: bool
) -> None:
    path, changed = tmp_path / "file", CONTENT[::-1]
    with serving({"file": CONTENT}) as server:
        server.cuts = [700_000]
        with pytest.raises(OSError, match="ended after"):
            fetch(f"{server.url}/file", path, attempts=1)
        server.files["file"] = changed
        server.knows_ranges = knows_ranges
        fetch(f"{server.url}/file", path)
    assert path.read_bytes() == changed


def test_a_busy_server_is_asked_again_and_a_missing_file_is_not(tmp_path: Path) -> None:
    with serving({"file": CONTENT}) as server:
        server.busy = 2
        fetch(f"{server.url}/file", tmp_path / "file", attempts=3, wait_seconds=0)
        assert len(server.requests) == 3
        server.busy = 3
        with pytest.raises(OSError, match=r"/other: HTTP Error 503.*0 bytes are kept"):
            fetch(f"{server.url}/other", tmp_path / "other", attempts=3, wait_seconds=0)
        server.requests.clear()
        with pytest.raises(OSError, match=rf"{server.url}/none: HTTP Error 404"):
            fetch(f"{server.url}/none", tmp_path / "none", wait_seconds=0)
        assert len(server.requests) == 1
    assert names(tmp_path) == [CHECKSUMS_NAME, "file"]


def test_nobody_at_the_address_is_an_error_that_names_it(tmp_path: Path) -> None:
    with serving({}) as server:
        url = f"{server.url}/file"
    with pytest.raises(OSError, match=f"{url}: .*refused"):
        fetch(url, tmp_path / "file", attempts=2, wait_seconds=0)


def test_a_wrong_checksum_is_refused_whether_the_file_comes_or_is_there(tmp_path: Path) -> None:
    path, wrong = tmp_path / "file", "0" * 64
    with serving({"file": CONTENT}) as server:
        url = f"{server.url}/file"
        with pytest.raises(ValueError, match=f"{url}: expected sha256 {wrong}, got {CHECKSUM}"):
            fetch(url, path, wrong)
        assert names(tmp_path) == []
        fetch(url, path)
        with pytest.raises(
            ValueError, match=rf"{path} \(remove it to fetch it again\): expected sha256 {wrong}"
        ):
            fetch(url, path, wrong)
        path.write_bytes(CONTENT[:-1])
        with pytest.raises(ValueError, match=f"remove it.*: expected sha256 {CHECKSUM}, got"):
            fetch(url, path)

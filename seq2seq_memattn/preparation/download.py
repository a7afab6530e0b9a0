"""Downloads files over HTTP: a file appears only when complete, and downloads can be resumed."""

import errno
import hashlib
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tqdm import tqdm

from seq2seq_memattn.data.locks import locked
from seq2seq_memattn.notes import STANDARD_ERROR
from seq2seq_memattn.text.files import sync_directory

CHUNK_BYTES = 1 << 18
TIMEOUT_SECONDS = 60.0
# Statuses of temporary failures, such as a busy server.
PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
# Failures of the disk, for which another attempt does not help.
LASTING_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
CHECKSUMS_NAME = "SHA256SUMS"  # beside the files, as `sha256sum --check` reads it


class MissingFile(OSError):
    """The server does not have a file."""


def fetch(
    url: str, path: Path, sha256: str = "", attempts: int = 5, wait_seconds: float = 2.0
) -> None:
    """Downloads a file unless it exists already.

    The bytes received so far are in `NAME.part`, and the server's identifier of the file's version
    in `NAME.part.json`. A later call downloads only the rest of that version. The checksum of a
    complete file is recorded in SHA256SUMS beside it, and verified when the file is found again.

    Args:
        url: URL of the file.
        path: where the file goes; its directory must exist.
        sha256: the expected checksum in hexadecimal, or "".
        attempts: int > 0. The download fails after this many failed attempts in a row; an attempt
            that made progress counts as the first.
        wait_seconds: seconds before the second attempt, doubled before each further one.

    Raises:
        OSError: if the file cannot be downloaded; the message names the URL. The bytes received are
            kept. `MissingFile` if the server does not have the file.
        ValueError: if the file, just downloaded or already there, has a wrong checksum.
    """
    if not path.exists():
        with locked(path.parent, "downloading to this directory", waits=True):
            if not path.exists():  # another process may just have been faster
                _download(url, path, sha256, attempts, wait_seconds)
                return
    expected = sha256 or _noted(path)
    if expected:
        _check(path, f"{path} (remove it to fetch it again)", expected)


def _download(url: str, path: Path, sha256: str, attempts: int, wait_seconds: float) -> None:
    part = path.with_name(f"{path.name}.part")
    failures, most = 0, _size(part)
    while True:
        try:
            _fetch_rest(url, part)
            break
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code not in PASSING_STATUS:
                kind = MissingFile if error.code == http.client.NOT_FOUND else OSError
                raise kind(f"{url}: {error}") from None
            failures = 1 if _size(part) > most else failures + 1
            most = max(most, _size(part))
            if failures >= attempts or getattr(error, "errno", None) in LASTING_ERRORS:
                kept = f"{_size(part):,} bytes are kept in {part}"
                raise OSError(f"{url}: {str(error) or type(error).__name__}; {kept}") from None
            time.sleep(wait_seconds * 2 ** (failures - 1))
    try:
        found = _check(part, url, sha256)
    except ValueError:
        _remove(part)
        raise
    # The checksum comes first: a complete file without one would never be checked again.
    with open(path.with_name(CHECKSUMS_NAME), "a", encoding="utf-8") as stream:
        stream.write(f"{found}  {path.name}\n")
    os.replace(part, path)
    _remove(part)
    sync_directory(path.parent)


def _fetch_rest(url: str, part: Path) -> None:
    """Appends the missing bytes to `part`; raises OSError if the connection ends early."""
    start = _size(part)
    request = urllib.request.Request(url)
    mark = _read_mark(part)
    if start and mark:
        request.add_header("Range", f"bytes={start}-")
        request.add_header("If-Range", mark)  # a changed file is sent from its beginning
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if not start or error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        if error.headers.get("Content-Range") == f"bytes */{start}":
            return  # the part was already complete
        _remove(part)
        raise OSError(f"the server has no byte {start:,}; starting again") from None
    with response:
        if response.status != http.client.PARTIAL_CONTENT:
            start = 0
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else None
        with (
            open(part, "ab" if start else "wb") as stream,
            tqdm(
                desc=part.name.removesuffix(".part"),
                total=total,
                initial=start,
                unit="B",
                unit_scale=True,
                file=STANDARD_ERROR,
            ) as bar,
        ):
            _write_mark(part, response.headers)  # after `open` removed any other version
            while chunk := response.read(CHUNK_BYTES):
                stream.write(chunk)
                bar.update(len(chunk))
            stream.flush()
            os.fsync(stream.fileno())  # before the file gets its final name
    if total is not None and _size(part) != total:
        raise OSError(f"the connection ended after {_size(part):,} of {total:,} bytes")


def _remove(part: Path) -> None:
    """Removes a part and its mark, if they exist."""
    part.unlink(missing_ok=True)
    _mark_path(part).unlink(missing_ok=True)


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _mark_path(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _read_mark(part: Path) -> str:
    """The server's identifier of the version that a part belongs to, or ""."""
    try:
        return json.loads(_mark_path(part).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""


def _write_mark(part: Path, headers: Any) -> None:
    tag = headers.get("ETag", "")
    mark = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified", "")
    _mark_path(part).write_text(json.dumps(mark), encoding="utf-8")


def _noted(path: Path) -> str:
    """The checksum that was recorded when a file was downloaded, or ""."""
    try:
        lines = path.with_name(CHECKSUMS_NAME).read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    found = [line.split()[0] for line in lines if line.split()[1:] == [path.name]]
    return found[-1] if found else ""


def _check(path: Path, name: str, expected: str) -> str:
    """Returns a file's checksum; raises ValueError if it differs from `expected` (if not "")."""
    with open(path, "rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if expected and found != expected:
        raise ValueError(f"{name}: expected sha256 {expected}, got {found}")
    return found

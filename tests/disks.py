"""What tests of full and read-only disks share.

They mount small file systems. Where this process may not, each of them runs once more in a user
namespace of its own, where it may; where there is no such namespace either, full disks are imitated
by a limit on the size of files for those tests that this will do for. All others fail.
"""

import contextlib
import functools
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import ROOT

FULL = "No space left on device|File too large"  # what the two kinds of full disks say


def small_disk_of(size: int, is_for_one_file: bool = False) -> pytest.MarkDecorator:
    """For tests with the fixture `small_disk`.

    Args:
        size: bytes of the file system.
        is_for_one_file: whether a limit on the size of each file will do.
    """
    return pytest.mark.parametrize(
        "small_disk", [pytest.param((size, is_for_one_file), id=str(size))], indirect=True
    )


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """A file system of some bytes while the block lasts; PermissionError where that is denied."""
    folder.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """The file system of `small_disk` cannot be written while the block lasts."""
    _mount("-o", "remount,ro", str(folder))
    try:
        yield
    finally:
        _mount("-o", "remount,rw", str(folder))


def _mount(*arguments: str) -> None:
    made = subprocess.run(["mount", *arguments], capture_output=True, check=False)
    if made.returncode:
        raise PermissionError(made.stderr.decode(errors="replace").strip())


@functools.cache
def may_mount() -> bool:
    """Whether this process may mount file systems."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with small_disk(Path(folder, "disk"), 2**16):
                return True
        except PermissionError:
            return False


@functools.cache
def has_namespaces() -> bool:
    """Whether a process may make a namespace where it may mount."""
    mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", tempfile.gettempdir()]
    try:
        return not subprocess.run(mount, capture_output=True, check=False).returncode
    except FileNotFoundError:
        return False


def run_where_it_may_mount(test: str) -> None:
    """Runs a test in a namespace; fails with what it says if it fails there."""
    again = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", test]
    done = subprocess.run(
        ["unshare", "-rm", *again], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(f"in a namespace of its own: {done.stdout}{done.stderr}")


@contextlib.contextmanager
def small_files(size: int) -> Iterator[None]:
    """No file gets larger than `size` bytes while the block lasts."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

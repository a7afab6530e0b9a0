"""Small file systems for tests of full and read-only disks.

The tests mount small file systems. If this process has no right to mount, each test runs in a user
namespace of its own, which has the right. If there are no user namespaces, a limit on the size of
files imitates a full disk in the tests for which that is enough. All other tests are skipped, or
fail if the environment variable CI is set.
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

FULL = "No space left on device|File too large"  # errors of a full disk and of the size limit


def small_disk_of(size: int, is_for_one_file: bool = False) -> pytest.MarkDecorator:
    """Gives the fixture `small_disk` its parameter.

    Args:
        size: bytes of the file system.
        is_for_one_file: whether a limit on the size of each file is enough.
    """
    return pytest.mark.parametrize(
        "small_disk", [pytest.param((size, is_for_one_file), id=str(size))], indirect=True
    )


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """Mounts a file system of `size` bytes for a block; PermissionError without the right."""
    folder.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Makes the file system of `small_disk` read-only for a block."""
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
    """Whether this process has the right to mount file systems."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with small_disk(Path(folder, "disk"), 2**16):
                return True
        except PermissionError:
            return False


@functools.cache
def has_namespaces() -> bool:
    """Whether a process can make a namespace with the right to mount."""
    mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", tempfile.gettempdir()]
    try:
        return not subprocess.run(mount, capture_output=True, check=False).returncode
    except FileNotFoundError:
        return False


def run_where_it_may_mount(test: str) -> None:
    """Runs a test in a namespace; fails with its output if it fails there."""
    again = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", test]
    done = subprocess.run(
        ["unshare", "-rm", *again], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(f"in a namespace of its own: {done.stdout}{done.stderr}")


@contextlib.contextmanager
def small_files(size: int) -> Iterator[None]:
    """Limits the size of every file to `size` bytes for a block."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

"""Finds duplicate pairs in constant memory, with the help of two files.

Each pair is identified by a 64-bit BLAKE2b hash. Every duplicate is found. A pair that is not a
duplicate is mistaken for one only if its hash equals the hash of an earlier pair. The probability
that this happens at least once among n different pairs is below n^2 / 2^65: 7e-5 for 52 million.
"""

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

HASH_BYTES = 8  # per pair in the file of hashes; the file of flags has 1 byte per pair
BUFFERED_HASHES = 1 << 16  # hashes collected before a write
HASHES_AT_A_TIME = 1 << 22  # hashes sorted together: about 150 MiB
READ_HASHES = 1 << 20  # hashes read at a time


class DuplicateFinder:
    """Collects all pairs in order, then marks those that occurred before.

    Close it after use, for instance with `contextlib.closing`.

    Args:
        directory: where the files `hashes` and `duplicates` are written.
    """

    def __init__(self, directory: Path) -> None:
        self._hashes = directory / "hashes"
        self._flags = directory / "duplicates"
        self._stream = open(self._hashes, "wb")  # noqa: SIM115 (see `close`)
        self._buffer: list[bytes] = []
        self._count = 0

    def add(self, source: bytes, target: bytes) -> None:
        """Adds the next pair of lines, without newlines."""
        line = b"%b\n%b" % (source, target)
        self._buffer.append(hashlib.blake2b(line, digest_size=HASH_BYTES).digest())
        if len(self._buffer) == BUFFERED_HASHES:
            self._write()

    def find(self) -> Path:
        """Writes one byte per pair, 1 if an earlier pair is equal, and returns the file.

        The hashes are sorted in several passes. Pass i takes the hashes whose remainder modulo the
        number of passes is i, so equal hashes are always in the same pass.
        """
        self._write()
        self.close()
        with open(self._flags, "wb") as stream:  # a full disk raises here; a memmap would crash
            for start in range(0, max(1, self._count), READ_HASHES):
                stream.write(bytes(min(READ_HASHES, max(1, self._count - start))))
        flags = np.memmap(self._flags, np.uint8, "r+")
        num_passes = -(-self._count // HASHES_AT_A_TIME)
        for rest in range(num_passes):
            hashes, places = self._select(num_passes, rest)
            order = np.argsort(hashes, kind="stable")  # among equal hashes, the earliest is first
            ordered = hashes[order]
            flags[places[order[1:][ordered[1:] == ordered[:-1]]]] = 1
        flags.flush()
        self._hashes.unlink()
        return self._flags

    def close(self) -> None:
        """Closes the file of hashes; pairs can no longer be added."""
        self._stream.close()

    def _write(self) -> None:
        self._stream.write(b"".join(self._buffer))
        self._count += len(self._buffer)
        self._buffer.clear()

    def _select(
        self, divisor: int, rest: int
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """Returns the hashes of one pass and the indices of their pairs."""
        hashes, places = [], []
        for start in range(0, self._count, READ_HASHES):
            part = np.fromfile(self._hashes, "<u8", READ_HASHES, offset=start * HASH_BYTES)
            chosen = np.flatnonzero(part % np.uint64(divisor) == rest)
            hashes.append(part[chosen])
            places.append(start + chosen)
        return np.concatenate(hashes), np.concatenate(places)

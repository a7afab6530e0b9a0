"""Finds pairs that occurred before, in constant memory, with the help of two files.

Each pair is known by 64 bits of a BLAKE2b hash. A pair that is no duplicate is taken for one only
if its hash equals that of an earlier pair: among n different pairs this happens somewhere with a
probability of less than n^2 / 2^65, which is 7e-5 for 52 million. A duplicate is always found.
"""

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

HASH_BYTES = 8  # a pair, in the first file; the second, of flags, has 1
BUFFERED_HASHES = 1 << 16  # between two writes
HASHES_AT_A_TIME = 1 << 22  # sorted together: about 150 MiB
READ_HASHES = 1 << 20  # at a time


class DuplicateFinder:
    """Takes all pairs in their order, and then says which of them occurred before.

    To be closed, with `contextlib.closing` for instance.

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
        """Takes the next pair; the lines are without newlines."""
        line = b"%b\n%b" % (source, target)
        self._buffer.append(hashlib.blake2b(line, digest_size=HASH_BYTES).digest())
        if len(self._buffer) == BUFFERED_HASHES:
            self._write()

    def find(self) -> Path:
        """Writes one byte for each pair, 1 if an earlier pair is equal, and returns the file.

        Equal hashes meet because each pass sorts those that leave the same rest when divided by
        the number of passes.
        """
        self._write()
        self.close()
        with open(self._flags, "wb") as stream:  # a full disk is found here, not by a signal below
            for start in range(0, max(1, self._count), READ_HASHES):
                stream.write(bytes(min(READ_HASHES, max(1, self._count - start))))
        flags = np.memmap(self._flags, np.uint8, "r+")
        num_passes = -(-self._count // HASHES_AT_A_TIME)
        for rest in range(num_passes):
            hashes, places = self._select(num_passes, rest)
            order = np.argsort(hashes, kind="stable")  # of equal ones the earliest stays first
            ordered = hashes[order]
            flags[places[order[1:][ordered[1:] == ordered[:-1]]]] = 1
        flags.flush()
        self._hashes.unlink()
        return self._flags

    def close(self) -> None:
        """Closes the file of hashes; no pair can be added after that."""
        self._stream.close()

    def _write(self) -> None:
        self._stream.write(b"".join(self._buffer))
        self._count += len(self._buffer)
        self._buffer.clear()

    def _select(
        self, divisor: int, rest: int
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """Returns the hashes of one pass, and the numbers of their pairs."""
        hashes, places = [], []
        for start in range(0, self._count, READ_HASHES):
            part = np.fromfile(self._hashes, "<u8", READ_HASHES, offset=start * HASH_BYTES)
            chosen = np.flatnonzero(part % np.uint64(divisor) == rest)
            hashes.append(part[chosen])
            places.append(start + chosen)
        return np.concatenate(hashes), np.concatenate(places)

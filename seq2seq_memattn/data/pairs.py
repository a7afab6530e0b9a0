"""Pairs of source and target in one flat array, read from text or from shards of ids."""

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_memattn.data.batching import Indices, TokenIds
from seq2seq_memattn.data.manifest import DataFile, Split, verify_file
from seq2seq_memattn.text.files import iterate_lines
from seq2seq_memattn.vocabulary import END_ID, PAD_ID, Vocabulary

Ids = npt.NDArray[np.integer]


def id_dtype(*vocabulary_sizes: int) -> np.dtype[np.integer]:
    """The dtype of ids in shards: the narrowest that fits vocabularies of these sizes."""
    return np.dtype("<u2" if max(vocabulary_sizes) <= 1 << 16 else "<i4")


class TokenPairs:
    """An immutable list of pairs; takes 16 bytes per pair, and the item size of `tokens` per token.

    Args:
        tokens: int [num_tokens]. The pairs one after the other. Each pair is a source and a target,
            and each of the two ends with END_ID. No vocabulary encodes text as END_ID, so the end
            tokens alone separate the sequences. Shards have the same form.

    Attributes:
        tokens: int [num_tokens + 2]. The given tokens, then an END_ID and a PAD_ID (the last item,
            from which padding is read).
        offsets: int64 [2 * num_pairs + 3]. Source i is tokens[offsets[2 * i]:offsets[2 * i + 1]];
            its target follows. After the real pairs comes one more pair that has no effect and
            fills batches: its source is only END_ID, its target has no tokens.
    """

    def __init__(self, tokens: Ids) -> None:
        self.tokens = np.append(tokens, np.array([END_ID, PAD_ID], tokens.dtype))
        ends = np.flatnonzero(self.tokens == END_ID) + 1
        self.offsets: Indices = np.concatenate([[0], ends, ends[-1:]])

    def __len__(self) -> int:
        return len(self.offsets) // 2 - 1

    @property
    def lengths(self) -> Indices:
        """Source and target lengths in tokens including the end token; int64 [num_pairs, 2]."""
        return np.diff(self.offsets[:-2]).reshape(-1, 2)

    def source(self, index: int) -> TokenIds:
        """Returns one source, without end token; int32 [source_length - 1]."""
        return self._cut(2 * index)

    def target(self, index: int) -> TokenIds:
        """Returns one target, without end token; int32 [target_length - 1]."""
        return self._cut(2 * index + 1)

    def _cut(self, number: int) -> TokenIds:
        start, end = self.offsets[number : number + 2]
        return self.tokens[start : end - 1].astype(np.int32)


def read_shards(
    directory: Path, files: Sequence[DataFile], dtype: np.dtype[np.integer]
) -> TokenPairs:
    """Reads shards of a data directory.

    Args:
        directory: the data directory.
        files: the shards, as the manifest describes them; their checksums are verified.
        dtype: type of the ids, from `id_dtype`.

    Returns:
        The pairs of all the shards, in the order of the files.

    Raises:
        ValueError: if a shard is missing, has changed or is not a shard. The message names the
            file.
    """
    parts = []
    for file in files:
        path = directory / file.path
        verify_file(directory, file)
        try:
            tokens = np.load(path)
        except (ValueError, EOFError):
            tokens = None
        if not _are_pairs(tokens, dtype):
            raise ValueError(f"{path}: expected pairs of {dtype.name} ids")
        parts.append(tokens)
    return TokenPairs(np.concatenate(parts))


def _are_pairs(tokens: Any, dtype: np.dtype[np.integer]) -> bool:
    """Whether `tokens` is an array that `TokenPairs` accepts, with ids of type `dtype`."""
    is_flat = isinstance(tokens, np.ndarray) and tokens.dtype == dtype and tokens.ndim == 1
    if not is_flat or not tokens.size:
        return False
    return bool(tokens[-1] == END_ID) and np.count_nonzero(tokens == END_ID) % 2 == 0


def read_text(
    directory: Path,
    split: Split,
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
    dtype: npt.DTypeLike = np.int32,
) -> TokenPairs:
    """Reads a split of text with one example per line.

    Args:
        directory: the data directory.
        split: the split's record; the checksums of its files are verified.
        source_vocabulary, target_vocabulary: the vocabularies that encode the lines.
        dtype: type of the ids, from `id_dtype`.

    Raises:
        ValueError: if a side is missing or has changed, has a wrong number of lines, or has a line
            that cannot be encoded. The message names the file. If a line cannot be encoded, it also
            gives the number of the line, counted from 1.
    """
    sides = (
        _encoded(directory, split, "source", source_vocabulary),
        _encoded(directory, split, "target", target_vocabulary),
    )
    tokens = array("i")
    for source, target in zip(*sides, strict=True):
        tokens.extend([*source, END_ID, *target, END_ID])
    return TokenPairs(np.array(tokens, dtype))


def _encoded(
    directory: Path, split: Split, role: str, vocabulary: Vocabulary
) -> Iterator[list[int]]:
    """Yields one side of a split of text, line by line, and then verifies its file."""
    files = split.files_of(role)
    if len(files) != 1:
        raise ValueError(f"{directory}: expected one {role} file in a split, got {len(files)}")
    path, count = directory / files[0].path, 0
    for count, line in enumerate(iterate_lines(str(path)), 1):
        try:
            ids = vocabulary.encode(line)
        except ValueError as error:
            raise ValueError(f"{path}: line {count}: {error}") from None
        if count <= split.num_examples:  # surplus lines are only counted
            yield ids
    verify_file(directory, files[0])
    if count != split.num_examples:
        raise ValueError(f"{path}: expected {split.num_examples} lines, got {count}")

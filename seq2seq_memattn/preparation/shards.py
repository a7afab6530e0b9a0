"""Encodes pairs of text and writes them as shards of ids, in worker processes."""

import dataclasses
import json
from array import array
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from seq2seq_memattn.data.manifest import DataFile, describe_file
from seq2seq_memattn.data.pairs import Ids, id_dtype
from seq2seq_memattn.preparation.line_pairs import is_empty
from seq2seq_memattn.preparation.write_once import WORK_NAME
from seq2seq_memattn.text.files import atomic_binary, open_output
from seq2seq_memattn.vocabulary import END_ID, vocabulary_from_dict

FILTERS = ("empty", "duplicate", "over_long", "length_ratio")  # the first that matches is counted


@dataclasses.dataclass(frozen=True)
class Limits:
    """Length limits for training pairs, in tokens.

    Args:
        max_length: the maximum number of tokens on each side, with the end token.
        max_length_ratio: largest ratio of the longer to the shorter side, without end tokens; 0: no
            limit.
    """

    max_length: int
    max_length_ratio: float


@dataclasses.dataclass(frozen=True)
class Block:
    """The text of one shard, before encoding.

    Args:
        name: name of the shard, without suffix.
        sources, targets: the lines of each side, joined by newlines.
        duplicates: one byte per pair, 1 if the pair occurred before.
        limits: `Limits`; None: all pairs are kept, including empty ones and duplicates.
    """

    name: str
    sources: bytes
    targets: bytes
    duplicates: bytes
    limits: Limits | None


@dataclasses.dataclass(frozen=True)
class Shard:
    """The result of encoding a block; the fields not listed here are as in `manifest.Split`.

    Args:
        file: the shard's file; None if no pair was kept.
        num_read: pairs in the block.
        left_out: number of pairs left out, by filter.
    """

    file: DataFile | None
    num_read: int
    num_examples: int
    max_source_length: int
    max_target_length: int
    num_target_tokens: int
    left_out: Mapping[str, int]


class ShardWriter:
    """Encodes blocks and writes their shards.

    When a shard is on disk, its `Shard` is written to the work folder for `finished_shard`.

    Args:
        directory: the unfinished data directory, with the files of the vocabularies.
        source_spec, target_spec: dicts for `vocabulary_from_dict`.
    """

    def __init__(
        self, directory: Path, source_spec: Mapping[str, Any], target_spec: Mapping[str, Any]
    ) -> None:
        self._directory = directory
        self._source = vocabulary_from_dict(source_spec, directory)
        # One object for a joint vocabulary: both sides share its cache of encoded words.
        is_joint = source_spec == target_spec
        self._target = self._source if is_joint else vocabulary_from_dict(target_spec, directory)
        self._dtype = id_dtype(self._source.size, self._target.size)

    def __call__(self, block: Block) -> Shard:
        """Writes the shard of a block atomically; an OSError names the shard."""
        left_out: Counter[str] = Counter()
        tokens = array("H" if self._dtype.itemsize == 2 else "i")
        source_lengths, target_lengths = [], []
        source_lines = block.sources.decode().split("\n")
        target_lines = block.targets.decode().split("\n")
        for source_line, target_line, is_duplicate in zip(
            source_lines, target_lines, block.duplicates, strict=True
        ):
            if block.limits:
                if is_empty(source_line) or is_empty(target_line):
                    left_out["empty"] += 1
                    continue
                if is_duplicate:
                    left_out["duplicate"] += 1
                    continue
            source = self._source.encode(source_line)
            target = self._target.encode(target_line)
            reason = _reason(len(source), len(target), block.limits) if block.limits else None
            if reason:
                left_out[reason] += 1
                continue
            source.append(END_ID)
            target.append(END_ID)
            tokens.extend(source)
            tokens.extend(target)
            source_lengths.append(len(source))
            target_lengths.append(len(target))
        return self._write(
            block.name,
            np.array(tokens, self._dtype),
            num_read=len(source_lines),
            num_examples=len(source_lengths),
            max_source_length=max(source_lengths, default=0),
            max_target_length=max(target_lengths, default=0),
            num_target_tokens=sum(target_lengths),
            left_out={name: left_out[name] for name in FILTERS if left_out[name]},
        )

    def _write(self, name: str, tokens: Ids, **counts: Any) -> Shard:
        path = self._directory / f"{name}.npy"
        try:
            file = None
            if tokens.size:
                with atomic_binary(path) as stream:
                    np.save(stream, tokens)
                file = describe_file(self._directory, path.name, "examples")
            shard = Shard(file, **counts)
            with open_output(_record_path(self._directory, name)) as stream:
                json.dump(dataclasses.asdict(shard), stream)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        return shard


def finished_shard(directory: Path, name: str) -> Shard | None:
    """Returns the `Shard` that an interrupted preparation recorded; None if it recorded none."""
    path = _record_path(directory, name)
    if not path.exists():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    file = record.pop("file")
    return Shard(file and DataFile(**file), **record)


def start_worker(*arguments: Any) -> None:
    """Prepares a worker process for `write_shard`; takes the arguments of `ShardWriter`."""
    global _writer
    _writer = ShardWriter(*arguments)


def write_shard(block: Block) -> Shard:
    """Writes a shard in a worker process."""
    return _writer(block)


_writer: ShardWriter


def _reason(source_length: int, target_length: int, limits: Limits) -> str | None:
    """The name of the filter that drops a pair of these lengths (without end tokens), or None."""
    shorter, longer = sorted((source_length, target_length))
    if not shorter:  # the normalisation of a given model may remove all characters
        return "empty"
    if longer + 1 > limits.max_length:
        return "over_long"
    if limits.max_length_ratio and longer > limits.max_length_ratio * shorter:
        return "length_ratio"
    return None


def _record_path(directory: Path, name: str) -> Path:
    return directory / WORK_NAME / f"{name}.json"

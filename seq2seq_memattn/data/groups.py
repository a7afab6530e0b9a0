"""Pairs that are shuffled together, and their batches, made by NumPy."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np

from seq2seq_memattn.data.batching import Batch, Indices, TokenIds, as_batch
from seq2seq_memattn.data.pairs import TokenPairs
from seq2seq_memattn.data.records import Ids

Item = TypeVar("Item")


class Group(NamedTuple):
    """What batches are made of, by `numpy_batch` or by the graph of `tf_batches`.

    Fields:
        tokens, offsets: see `TokenPairs`.
        rows: int64 [num_rows]. The pairs in the order of the batches.
        splits: int64 [num_batches + 1]. Batch i has rows[splits[i]:splits[i + 1]].
        widths: int64 [num_batches, 2]. Tokens to which its sources and its targets are padded.
    """

    tokens: Ids
    offsets: Indices
    rows: Indices
    splits: Indices
    widths: Indices


def make_group(pairs: TokenPairs, batches: list[Indices], num_rows: int = 0) -> Group:
    """Makes a group whose batches are as wide as their longest sequences.

    Args:
        pairs: `TokenPairs`.
        batches: int64 [batch] each, the pairs of each batch.
        num_rows: a batch of fewer rows gets such that train nothing, up to this number.
    """
    rows = []
    for batch in batches:
        missing = num_rows - len(batch)
        rows.append(np.append(batch, missing * [len(pairs)]) if missing > 0 else batch)
    splits = np.cumsum([0, *map(len, rows)])
    joined = np.concatenate(rows)
    lengths = np.diff(pairs.offsets).reshape(-1, 2)
    widths = np.maximum.reduceat(lengths[joined], splits[:-1])
    return Group(pairs.tokens, pairs.offsets, joined, splits, widths)


def numpy_batch(group: Group, number: int) -> Batch:
    """Returns one batch of a group, which is what `batching.make_batch` describes."""
    rows = group.rows[group.splits[number] : group.splits[number + 1]]
    source_width, target_width = group.widths[number]
    return as_batch(
        _padded(group, 2 * rows, source_width), _padded(group, 2 * rows + 1, target_width)
    )


def _padded(group: Group, sequences: Indices, width: int) -> TokenIds:
    """Returns sequences of a group by their places in `offsets`, padded; int32 [batch, width]."""
    places = group.offsets[sequences, None] + np.arange(width)
    is_token = places < group.offsets[sequences + 1, None]
    return group.tokens[np.where(is_token, places, -1)].astype(np.int32)


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yields the items of an iterator; the next one is made by a thread meanwhile."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = reader.submit(next, items, None)
            yield item

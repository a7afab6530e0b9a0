"""Groups: pairs that are shuffled together, and their batches in NumPy."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np

from seq2seq_memattn.data.batching import Batch, Indices, TokenIds, as_batch
from seq2seq_memattn.data.pairs import Ids, TokenPairs

Item = TypeVar("Item")


class Group(NamedTuple):
    """The arrays from which `numpy_batch` and the graph of `tf_batches` make batches.

    Fields:
        tokens, offsets: see `TokenPairs`.
        rows: int64 [num_rows]. The pairs in the order of the batches.
        splits: int64 [num_batches + 1]. Batch i has rows[splits[i]:splits[i + 1]].
        widths: int64 [num_batches, 2]. Padded lengths of the sources and targets, in tokens.
    """

    tokens: Ids
    offsets: Indices
    rows: Indices
    splits: Indices
    widths: Indices


def make_group(
    pairs: TokenPairs, batches: list[Indices], full_size: Callable[[Indices], int] = len
) -> Group:
    """Makes a group whose batches are padded to their longest sequences.

    Args:
        pairs: `TokenPairs`.
        batches: the pairs of each batch, int64 [batch] each.
        full_size: function of a batch. Batches that are smaller than its result are filled up to
            it with rows that have no effect.
    """
    rows = []
    for batch in batches:
        missing = full_size(batch) - len(batch)
        rows.append(np.append(batch, missing * [len(pairs)]) if missing > 0 else batch)
    splits = np.cumsum([0, *map(len, rows)])
    joined = np.concatenate(rows)
    lengths = np.diff(pairs.offsets).reshape(-1, 2)
    widths = np.maximum.reduceat(lengths[joined], splits[:-1])
    return Group(pairs.tokens, pairs.offsets, joined, splits, widths)


def numpy_batch(group: Group, number: int) -> Batch:
    """Returns one batch of a group; see `batching.make_batch` for its content."""
    rows = group.rows[group.splits[number] : group.splits[number + 1]]
    source_width, target_width = group.widths[number]
    return as_batch(
        _padded(group, 2 * rows, source_width), _padded(group, 2 * rows + 1, target_width)
    )


def _padded(group: Group, sequences: Indices, width: int) -> TokenIds:
    """Returns sequences by their indices in `offsets`, padded; int32 [batch, width]."""
    places = group.offsets[sequences, None] + np.arange(width)
    is_token = places < group.offsets[sequences + 1, None]
    return group.tokens[np.where(is_token, places, -1)].astype(np.int32)


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yields the items of an iterator, while a thread makes the next one."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = reader.submit(next, items, None)
            yield item

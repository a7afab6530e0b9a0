"""A batch cut into the rows of each replica, and of each turn of one that takes several."""

from typing import Any

import numpy as np

from seq2seq_memattn.data.batching import Batch, fill_rows, round_up


def cut(batch: Any, num_parts: int) -> list[Batch]:
    """Parts of as many rows each: part i has rows i, i + num_parts, ...

    Where the rows do not suffice, there are some that train nothing.

    Args:
        batch: of `data.batching.make_batch`, or the same as tensors.
        num_parts: int > 0.
    """
    if num_parts == 1:
        return [batch]
    rows = {name: np.asarray(ids) for name, ids in batch.items()}
    rows = fill_rows(rows, round_up(len(rows["source"]), num_parts))
    return [{name: ids[i::num_parts] for name, ids in rows.items()} for i in range(num_parts)]

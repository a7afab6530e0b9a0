"""The training update of the systems that run on PyTorch."""

from collections.abc import Callable
from typing import Any

import torch

from experiments.benchmarks.peers.protocol import Batch, Update


def make_update(model: torch.nn.Module, loss_of: Callable[[Batch], Any]) -> Update:
    """Returns a function that updates a model with Adam.

    Args:
        model: the model.
        loss_of: computes the mean loss per target token of a batch, a scalar tensor.
    """
    optimizer = torch.optim.Adam(model.parameters())

    def update(batch: Batch) -> float:
        loss = loss_of(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return update

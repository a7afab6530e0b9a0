"""Trainers whose updates and validations are given in advance."""

import itertools
from collections.abc import Callable

import numpy as np

from seq2seq_memattn.training.loop import Trainer
from seq2seq_memattn.training.measurements import UpdateResult

Scripted = Callable[..., Trainer]

UPDATES = itertools.repeat(UpdateResult(1.0, 10.0, 0.5, True))
BLEUS = itertools.repeat(0)


def update(loss: float = 1.0, tokens: float = 10.0, norm: float = 0.5) -> UpdateResult:
    return UpdateResult(loss, tokens, norm, bool(np.isfinite(loss + norm)))

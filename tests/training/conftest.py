"""Runs that several test files use."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.search.batch_decoder import Hypothesis
from seq2seq_memattn.training.loop import Trainer, TrainingResult
from seq2seq_memattn.training.measurements import UpdateResult
from tests.training.runs import (
    make_data,
    train,
    trainer,
)
from tests.training.scripts import BLEUS, UPDATES, Scripted


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("data") / "copy")


@pytest.fixture(scope="session")
def finished(
    data_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, TrainingResult]]:
    """An uninterrupted run and its result; tests work on copies of the run."""
    run_dir = tmp_path_factory.mktemp("finished") / "run"
    yield run_dir, train(data_dir, run_dir)


@pytest.fixture
def scripted(data_dir: Path, tmp_path: Path) -> Scripted:
    """Makes trainers whose updates and validations are given in advance instead of computed."""

    def make(
        updates: Iterable[UpdateResult] = UPDATES, bleus: Iterable[int] = BLEUS, **options: Any
    ) -> Trainer:
        """Makes a trainer; `bleus` is the number of correct sources in each validation."""
        made = trainer(data_dir, tmp_path / "run", **options)
        results, rights = iter(updates), iter(bleus)
        made.updater = lambda batch, loss_scale: next(results)

        def decode(sources: Any, batch_size: int, on_batch: Any) -> list[list[Hypothesis]]:
            right = next(rights)
            wrong = np.zeros([0], np.int32)
            return [
                [Hypothesis(source if i < right else wrong, 0.0, 0.0)]
                for i, source in enumerate(sources)
            ]

        made.validator.decoder = decode  # type: ignore[assignment]
        made.validator.scorer = lambda sources, *_: np.zeros(len(sources))  # type: ignore[assignment]
        return made

    return make

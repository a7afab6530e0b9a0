"""A gate in front of all models, which tests open to let them compute."""

import threading

import numpy as np
import pytest

from seq2seq_memattn.serving.models.loaded_model import LoadedModel


class Gate:
    """Holds every batch until the gate is opened.

    Args:
        monkeypatch: the test's fixture. Load models first: the gate also holds their warm-up.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_reached = threading.Event()
        self.num_batches = 0
        self._is_open = threading.Event()
        run = LoadedModel.run

        def held(
            model: LoadedModel, signature: str, inputs: dict[str, np.ndarray]
        ) -> dict[str, np.ndarray]:
            self.num_batches += 1
            self.is_reached.set()
            assert self._is_open.wait(30)
            return run(model, signature, inputs)

        monkeypatch.setattr(LoadedModel, "run", held)

    def open(self) -> None:
        self._is_open.set()

    def open_soon(self) -> None:
        """Opens the gate after 0.3 seconds, so that the next statements can run first."""
        threading.Timer(0.3, self.open).start()

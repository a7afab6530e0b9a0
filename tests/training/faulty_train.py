"""Runs `experiments.train` with a fault: python -m tests.training.faulty_train FAULT [flags].

slow:S               makes each update S seconds longer
SIGTERM:N, SIGINT:N  sends the signal during the N-th update of this start
kill_in_write:N      kills the process when half of its N-th file of weights is written
"""

import io
import os
import runpy
import signal
import sys
import time
from typing import Any

import keras
import numpy as np


def before_updates(action: Any) -> None:
    """Calls `action` before each update, with the update's number, starting at 1."""
    if keras.backend.backend() == "jax":
        from seq2seq_memattn.training.updates.jax_update import JaxUpdater as Updater
    else:
        from seq2seq_memattn.training.updates.tensorflow_update import (  # type: ignore[assignment]
            TensorFlowUpdater as Updater,
        )
    original, count = Updater.__call__, 0

    def call(self: Any, *arguments: Any) -> Any:
        nonlocal count
        count += 1
        action(count)
        return original(self, *arguments)

    Updater.__call__ = call  # type: ignore[method-assign]


def before_writes(number: int) -> None:
    """Kills the process in the middle of the `number`-th archive that it writes."""
    original, count = np.savez, 0

    def savez(stream: Any, **arrays: Any) -> None:
        nonlocal count
        count += 1
        if count < number:
            return original(stream, **arrays)
        whole = io.BytesIO()
        original(whole, **arrays)
        stream.write(whole.getvalue()[: whole.tell() // 2])
        stream.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    np.savez = savez  # type: ignore[assignment]


def main() -> None:
    fault, _, value = sys.argv.pop(1).partition(":")
    if fault == "slow":
        before_updates(lambda update: time.sleep(float(value)))
    elif fault == "kill_in_write":
        before_writes(int(value))
    else:
        number = signal.Signals[fault]
        before_updates(lambda n: os.kill(os.getpid(), number) if n == int(value) else None)
    runpy.run_module("experiments.train", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

"""Handles the signals that end a training with a checkpoint."""

import contextlib
import os
import signal
from types import FrameType
from typing import NoReturn

# Begins with a newline, because a progress bar may occupy the line.
_TOLD = (
    b"\nSIGINT: the training ends with a checkpoint; "
    b"a second Ctrl-C ends the training at once, without one\n"
)


class SignalCame(Exception):
    """Raised to abandon work, such as a validation, after a signal."""


class Signals:
    """Records SIGTERM and SIGINT as a number that the loop checks between updates.

    The first SIGINT prints a message. A second SIGINT raises KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self.number = 0
        self._before = {
            number: signal.signal(number, self._catch) for number in (signal.SIGTERM, signal.SIGINT)
        }

    def _catch(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.number = number
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, _end_at_once)
            # Not with print: the signal may have interrupted another call of print.
            with contextlib.suppress(OSError):
                os.write(2, _TOLD)

    def restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    raise KeyboardInterrupt(
        "interrupted at once; run the same command again to resume from the last checkpoint"
    )

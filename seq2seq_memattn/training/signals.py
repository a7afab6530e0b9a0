"""Signals that end a training, after a checkpoint."""

import contextlib
import os
import signal
from types import FrameType
from typing import NoReturn

# Begins with a newline: there may be a bar in the line.
_TOLD = (
    b"\nSIGINT: the training ends with a checkpoint; "
    b"a second Ctrl-C ends the training at once, without one\n"
)


class SignalCame(Exception):
    """Ends work that is not worth finishing after a signal."""


class Signals:
    """Turns SIGTERM and SIGINT into a number that the loop looks at between updates.

    A second SIGINT raises KeyboardInterrupt; the first says so on standard error.
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
            # Not by print, in the middle of which the signal may have come.
            with contextlib.suppress(OSError):
                os.write(2, _TOLD)

    def restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    raise KeyboardInterrupt(
        "interrupted at once, without a checkpoint; the same command goes on from the last one"
    )

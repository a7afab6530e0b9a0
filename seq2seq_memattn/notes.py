"""Progress messages on standard error."""

import contextlib
import sys
from typing import Any

from tqdm import tqdm


class _StandardError:
    """Standard error as it is at each call, without its failures.

    A closed pipe or a full disk behind standard error loses messages. It must not also lose the
    work that they are about, such as a training without a new checkpoint.
    """

    def write(self, text: str) -> None:
        """Writes text if that is possible."""
        with contextlib.suppress(OSError):
            if sys.stderr is not None:  # it was closed before the start
                sys.stderr.write(text)

    def flush(self) -> None:
        """Flushes the stream if that is possible."""
        with contextlib.suppress(OSError):
            if sys.stderr is not None:
                sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


# A text stream for messages and progress bars.
STANDARD_ERROR: Any = _StandardError()


def print_note(message: str) -> None:
    """Prints a line on standard error, above progress bars."""
    tqdm.write(message, file=STANDARD_ERROR)

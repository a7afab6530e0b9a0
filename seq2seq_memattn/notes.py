"""Progress messages on standard error."""

import sys

from tqdm import tqdm


def print_note(message: str) -> None:
    """Prints a line on standard error, above progress bars."""
    tqdm.write(message, file=sys.stderr)

"""Lines for the person who waits."""

import sys

from tqdm import tqdm


def print_note(message: str) -> None:
    """Prints a line on standard error, above bars of progress."""
    tqdm.write(message, file=sys.stderr)

"""Marks for parameters of tests."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Parameters that only slow tests use; a tuple is one set of several parameters."""
    sets = (value if isinstance(value, tuple) else (value,) for value in values)
    return [pytest.param(*each, marks=pytest.mark.slow) for each in sets]


def quick(values: Iterable[str], *first: str) -> list[Any]:
    """All values as parameters; only those in `first` are quick, the others are slow."""
    return [*first, *slow(*(value for value in values if value not in first))]

"""Marks for parameters of tests."""

from collections.abc import Iterable
from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Parameters that `make test` leaves out; a tuple is one set of several parameters."""
    sets = (value if isinstance(value, tuple) else (value,) for value in values)
    return [pytest.param(*each, marks=pytest.mark.slow) for each in sets]


def quick(values: Iterable[str], *first: str) -> list[Any]:
    """All of the values as parameters, of which `make test` runs the `first` alone."""
    return [*first, *slow(*(value for value in values if value not in first))]

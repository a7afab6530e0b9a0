"""Checks of arguments that several layers or kinds of files share."""

from pathlib import PurePath
from typing import Any


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raises ValueError if an argument is none of its choices."""
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(choices)}; got {value!r}.")


def check_file_name(field: str, name: Any) -> None:
    """Raises ValueError if a field of a stored record is no name of a file beside that record."""
    if not isinstance(name, str) or name in ("", "..") or PurePath(name).name != name:
        raise ValueError(f"{field}: expected a name without directories, got {name!r}")

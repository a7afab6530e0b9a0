"""Argument checks that several layers and file formats share."""

import math
import numbers
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

MAX_SEED = 2**31 - 1  # the largest int32


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raises ValueError if an argument is not one of its choices."""
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(choices)}; got {value!r}.")


def check_int(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """An argument as a plain int; raises ValueError unless it is a Python or NumPy int in range."""
    is_int = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_int or value < least or (most is not None and value > most):
        limits = f">= {least}" if most is None else f"in {least}..{most}"
        raise ValueError(f"`{name}` must be an int {limits}; got {_in_one_line(value)}.")
    return int(value)


def is_int_array(x: Any, most_axes: int) -> bool:
    """Whether `x` is an integer array with at most `most_axes` axes; NumPy scalars do not count."""
    is_array = hasattr(x, "shape") and not isinstance(x, numbers.Number)
    return is_array and "int" in str(x.dtype) and len(x.shape) <= most_axes


def check_number(name: str, value: Any, least: float = -math.inf, most: float = math.inf) -> None:
    """Raises ValueError unless an argument is a finite Python or NumPy number in a range."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise ValueError(f"`{name}` must be a finite number; got {_in_one_line(value)}.")
    if not least <= value <= most:
        limits = f">= {least:g}" if most == math.inf else f"in {least:g}..{most:g}"
        raise ValueError(f"`{name}` must be {limits}; got {_in_one_line(value)}.")


def check_share(name: str, value: Any) -> None:
    """Raises ValueError if an argument, such as a dropout rate, is not a number in [0, 1)."""
    check_number(name, value)
    if not 0.0 <= value < 1.0:
        raise ValueError(f"`{name}` must be in [0, 1); got {value}.")


def plain_ids(name: str, ids: Any) -> tuple[int, ...]:
    """Ids as plain ints; raises ValueError if they are not a sequence or array of ints >= 0."""
    if not isinstance(ids, (Sequence, np.ndarray)) or isinstance(ids, str):
        raise ValueError(f"`{name}`: expected a sequence of ids; got {_in_one_line(ids)}.")
    return tuple(check_int(name, each, least=0) for each in ids)


def _in_one_line(value: Any) -> str:
    return " ".join(repr(value).split())


def check_rank(name: str, x: Any, axes: tuple[str, ...]) -> None:
    """Raises ValueError if `x` is not an array with one axis for each name in `axes`."""
    if not hasattr(x, "shape"):
        raise ValueError(
            f"`{name}`: expected an array [{', '.join(axes)}]; got {type(x).__name__}."
        )
    if len(x.shape) != len(axes):
        raise ValueError(
            f"`{name}`: expected shape [{', '.join(axes)}]; got {list(x.shape)} of "
            f"{getattr(x.dtype, 'name', x.dtype)}."
        )


def check_size(name: str, axis: str, size: int | None, expected: int | None) -> None:
    """Raises ValueError if both sizes are known and differ."""
    if None not in (size, expected) and size != expected:
        raise ValueError(f"`{name}`: expected {axis} {expected}; got {size}.")


def check_mask(name: str, mask: Any, x: Any) -> None:
    """Raises ValueError if a mask is not [batch, length] with the sizes of `x`; accepts None."""
    if mask is None:
        return
    check_rank(name, mask, ("batch", "length"))
    for axis, size, expected in zip(("batch", "length"), mask.shape, x.shape, strict=False):
        check_size(name, axis, size, expected)


def check_state(state: Any, record: Any) -> None:
    """Raises ValueError unless `state` has one entry for each field of `record`, a NamedTuple."""
    if not isinstance(state, (list, tuple)) or len(state) != len(record._fields):
        size = f" of {len(state)}" if isinstance(state, (list, tuple)) else ""
        raise ValueError(
            f"`state`: expected {record.__name__}({', '.join(record._fields)}), from "
            f"`initial_state` or the step before; got {type(state).__name__}{size}."
        )


def check_policy(name: str, layer: Any, owner: Any) -> None:
    """Raises ValueError if `layer` and `owner`, the layer it belongs to, differ in dtype policy."""
    policy = getattr(layer, "dtype_policy", owner.dtype_policy)
    if policy.name != owner.dtype_policy.name:
        raise ValueError(
            f"`{name}`: expected dtype policy {owner.dtype_policy.name}, that of the "
            f"{type(owner).__name__}; got {policy.name}."
        )


def check_file_name(field: str, name: Any) -> None:
    """Raises ValueError unless a field of a stored record is a file name without directories."""
    if not isinstance(name, str) or name in ("", "..") or PurePath(name).name != name:
        raise ValueError(f"{field}: expected a name without directories, got {name!r}")

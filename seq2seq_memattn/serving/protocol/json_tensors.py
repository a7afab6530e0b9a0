"""Converts nested JSON lists to arrays of a signature's dtypes, and back."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any

import numpy as np

from seq2seq_memattn.serving.models.signatures import TensorSpec

MAX_RANK = 32  # the maximum number of axes that every version of NumPy supports

# The largest number of each type. Float64 needs no limit: values are converted to it beforehand.
_FLOAT_LIMITS = {np.dtype(kind): float(np.finfo(kind).max) for kind in (np.float16, np.float32)}


@dataclass(frozen=True)
class InputBounds:
    """Limits on the size of a request's inputs.

    Args:
        max_rows: the maximum number of rows in a request.
        max_text_bytes: longest string in bytes of UTF-8.
    """

    max_rows: int
    max_text_bytes: int


def from_nested(value: Any, spec: TensorSpec, bounds: InputBounds) -> np.ndarray:
    """Makes the array of an input from nested lists.

    Args:
        value: a parsed JSON value.
        spec: dtype and shape of the input.
        bounds: limits of the size.

    Returns:
        Array of the spec's dtype; strings are bytes.

    Raises:
        ValueError: if the value does not fit the spec or exceeds the limits.
    """
    if spec.has_rows and isinstance(value, list) and len(value) > bounds.max_rows:
        raise ValueError(f"at most {bounds.max_rows} rows are allowed, got {len(value)}")
    shape = _shape_of(value)
    _check_shape(shape, spec)
    leaves = [value]
    for axis, size in enumerate(shape):
        leaves = _flattened(leaves, axis, size)
    convert = _CONVERTERS.get(spec.dtype.kind)
    if convert is None:
        raise ValueError(f"values of {spec.dtype} cannot be written in JSON")
    flat = np.empty(len(leaves), spec.dtype)
    for index, leaf in enumerate(leaves):
        flat[index] = convert(leaf, spec, bounds)
    return flat.reshape(shape)


def to_nested(array: np.ndarray, is_binary: bool) -> Any:
    """Makes the nested lists of an output.

    Args:
        array: numbers, booleans or bytes.
        is_binary: whether to write bytes as base64 instead of UTF-8 text.

    Returns:
        Nested lists of JSON values.
    """
    if array.dtype == object:
        write = _to_base64 if is_binary else _to_text
        texts = [write(value) for value in array.ravel()]
        return np.array(texts, object).reshape(array.shape).tolist()
    if array.dtype.kind in "biu" or array.dtype == np.float64:
        return array.tolist()
    # The shortest decimals that give the same float32 number; those of float64 would be longer.
    flat = [float(str(value)) for value in array.astype(np.float32).ravel()]
    return np.array(flat, object).reshape(array.shape).tolist()


def _shape_of(value: Any) -> tuple[int, ...]:
    """The shape of nested lists, judged by their first elements."""
    shape: list[int] = []
    while isinstance(value, list):
        shape.append(len(value))
        if len(shape) > MAX_RANK:
            raise ValueError(f"expected lists nested at most {MAX_RANK} deep")
        if not value:
            break
        value = value[0]
    return tuple(shape)


def _check_shape(shape: tuple[int, ...], spec: TensorSpec) -> None:
    if spec.shape is None:
        return
    fits = len(shape) == len(spec.shape) and all(
        wanted in (None, size) for size, wanted in zip(shape, spec.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in spec.shape)
        raise ValueError(f"expected the shape [{wanted}], got {list(shape)}")


def _flattened(values: list[Any], axis: int, size: int) -> list[Any]:
    for value in values:
        if not isinstance(value, list) or len(value) != size:
            found = f"{len(value)} elements" if isinstance(value, list) else "a value"
            raise ValueError(
                f"expected lists of one shape, with {size} elements on axis {axis}; got {found}"
            )
    return [element for value in values for element in value]


def _to_string(value: Any, spec: TensorSpec, bounds: InputBounds) -> bytes:
    if isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str):
        text: str | bytes = _from_base64(value["b64"])
    elif isinstance(value, str):
        text = value
    else:
        raise ValueError(f'expected strings or {{"b64": string}}, got {kind_of(value)}')
    try:
        found = text.encode("utf-8") if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise ValueError(
            f"a text has a lone surrogate at character {error.start}, which UTF-8 cannot express"
        ) from None
    if len(found) > bounds.max_text_bytes:
        raise ValueError(
            f"a text may have at most {bounds.max_text_bytes} bytes; one has {len(found)}"
        )
    return found


def _from_base64(text: str) -> bytes:
    try:
        bare = text.rstrip("=")  # padding may be left out, as TensorFlow Serving allows
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (ValueError, binascii.Error):
        raise ValueError('expected base64 in "b64"') from None


def _to_number(value: Any, spec: TensorSpec, bounds: InputBounds) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected numbers, got {kind_of(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"a number is too large for {spec.dtype}") from None
    if np.isfinite(number) and abs(number) > _FLOAT_LIMITS.get(spec.dtype, np.inf):
        raise ValueError(f"{value} is too large for {spec.dtype}")
    return number


def _to_integer(value: Any, spec: TensorSpec, bounds: InputBounds) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected whole numbers, got {kind_of(value)}")
    limits = np.iinfo(spec.dtype)
    if not limits.min <= value <= limits.max:
        raise ValueError(f"a number is out of the range of {spec.dtype}")
    return value


def _to_truth(value: Any, spec: TensorSpec, bounds: InputBounds) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {kind_of(value)}")
    return value


# By kind of NumPy dtype.
_CONVERTERS = {"O": _to_string, "f": _to_number, "i": _to_integer, "u": _to_integer, "b": _to_truth}


def _to_text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _to_base64(value: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(value).decode("ascii")}


def kind_of(value: Any) -> str:
    """Names the kind of a JSON value, for messages that must not repeat the value."""
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "a truth value"}
    if value is None:
        return "null"
    if value == []:
        return "an empty list"
    return kinds.get(type(value), "a number")

"""TensorFlow Serving's REST format for predictions: parses bodies and writes answers.

Source: TensorFlow Serving's documentation, "RESTful API", sections "Predict API", "JSON mapping",
"Encoding binary values" and "JSON conformance".
Differs from it: a repeated key in an object and a request without rows are errors. If all inputs
are batches, they must have the same number of rows in the column format too. Version labels,
classify, regress and compressed bodies are not supported.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from seq2seq_memattn.serving.errors import invalid
from seq2seq_memattn.serving.models.signatures import DEFAULT_SIGNATURE, Arrays, Signature
from seq2seq_memattn.serving.protocol.json_tensors import (
    InputBounds,
    from_nested,
    kind_of,
    to_nested,
)

JSON_TYPE = "application/json"
BYTES_SUFFIX = "_bytes"  # ends the names of string outputs that are not text


@dataclass(frozen=True)
class PredictRequest:
    """A parsed body of `:predict`.

    Args:
        signature: the requested signature.
        inputs: array of each input by name.
        by_rows: whether the body was in row format; the answer then is too.
    """

    signature: Signature
    inputs: Arrays
    by_rows: bool

    @property
    def num_rows(self) -> int:
        """Number of rows; 1 if the signature's inputs are not batches."""
        return len(next(iter(self.inputs.values()))) if self.signature.has_rows else 1


def parse_predict(
    body: bytes, signatures: Mapping[str, Signature], bounds: InputBounds
) -> PredictRequest:
    """Reads the body of a `:predict` request.

    Args:
        body: JSON text.
        signatures: signatures of the model by name.
        bounds: limits of the inputs.

    Returns:
        The parsed request.

    Raises:
        RequestError: status 400 if the body is wrong or does not fit its signature.
    """
    request = _read_object(body)
    signature = _find_signature(request, signatures)
    by_rows = "instances" in request
    if by_rows == ("inputs" in request):
        raise invalid('expected either "instances" or "inputs" in the body, got both or neither')
    if by_rows:
        inputs = _columns(request["instances"], signature)
    else:
        inputs = _named(request["inputs"], signature)
    _check_names(inputs, signature)
    return PredictRequest(signature, _to_arrays(inputs, signature, bounds), by_rows)


def format_predict(outputs: Arrays, by_rows: bool) -> bytes:
    """Writes the answer to a `:predict` request.

    Args:
        outputs: array of each output by name.
        by_rows: whether the request was in row format.

    Returns:
        JSON text.

    Raises:
        RequestError: status 400 if the request was in row format, but the outputs differ in their
            first axis.
    """
    values = {name: _to_json(name, array) for name, array in outputs.items()}
    only = next(iter(values)) if len(values) == 1 else None
    if not by_rows:
        return _to_body({"outputs": values if only is None else values[only]})
    if len({array.shape[:1] for array in outputs.values()}) > 1 or not all(
        array.ndim for array in outputs.values()
    ):
        raise invalid(
            'the outputs have no common first axis: use the column format, with "inputs" instead '
            'of "instances"'
        )
    if only is not None:
        return _to_body({"predictions": values[only]})
    rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    return _to_body({"predictions": rows})


def format_error(message: str) -> bytes:
    """Writes an error message in the form of the protocol."""
    return _to_body({"error": message})


def _read_object(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body.decode("utf-8"), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        raise invalid(f"the body is not UTF-8: byte {error.start}") from None
    except RecursionError:
        raise invalid("the body is nested too deeply") from None
    except ValueError as error:  # JSONDecodeError, or a number of thousands of digits
        raise invalid(f"the body is not JSON: {error}") from None
    if not isinstance(request, dict):
        raise invalid(f"expected a JSON object as body, got {kind_of(request)}")
    return request


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes a JSON object; raises RequestError for a repeated key, which would lose a value."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise invalid(f"the key {_quoted(key)} comes twice in an object")
        found[key] = value
    return found


def _find_signature(request: dict[str, Any], signatures: Mapping[str, Signature]) -> Signature:
    name = request.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid(f'expected a string as "signature_name", got {kind_of(name)}')
    name = name or DEFAULT_SIGNATURE  # as in TensorFlow Serving
    if name not in signatures:
        known = ", ".join(sorted(signatures))
        raise invalid(f"the model has no signature {_quoted(name)}; it has {known}")
    return signatures[name]


def _columns(instances: Any, signature: Signature) -> dict[str, Any]:
    """Values of each input, from a list of instances: plain values, or objects of named values."""
    if not isinstance(instances, list) or not instances:
        raise invalid(f'expected a list of one or more "instances", got {kind_of(instances)}')
    if not _has_names(instances[0]):
        if any(_has_names(one) for one in instances):
            raise invalid('expected all or none of "instances" to be objects with inputs by name')
        return {_only_input(signature): instances}
    names = list(instances[0])
    for number, one in enumerate(instances):
        if not _has_names(one) or one.keys() != instances[0].keys():
            raise invalid(
                f"expected the same inputs in every instance; instance {number} differs from the "
                "first"
            )
    return {name: [one[name] for one in instances] for name in names}


def _named(inputs: Any, signature: Signature) -> dict[str, Any]:
    return inputs if _has_names(inputs) else {_only_input(signature): inputs}


def _has_names(value: Any) -> bool:
    """Whether a value is an object of named inputs, not the value of a single input."""
    return isinstance(value, dict) and value.keys() != {"b64"}


def _only_input(signature: Signature) -> str:
    if len(signature.inputs) != 1:
        expected = ", ".join(sorted(signature.inputs)) or "none"
        raise invalid(
            f"the signature {_quoted(signature.name)} has several inputs, which must be given by "
            f"name: {expected}"
        )
    return next(iter(signature.inputs))


def _check_names(inputs: dict[str, Any], signature: Signature) -> None:
    missing = sorted(signature.inputs.keys() - inputs.keys())
    unknown = sorted(inputs.keys() - signature.inputs.keys())
    if missing or unknown:
        problem = (
            f"the input {_quoted(missing[0])} is missing"
            if missing
            else f"there is no input {_quoted(unknown[0])}"
        )
        raise invalid(f"signature {_quoted(signature.name)}: {problem}")


def _to_arrays(inputs: dict[str, Any], signature: Signature, bounds: InputBounds) -> Arrays:
    arrays = {}
    for name, spec in signature.inputs.items():
        try:
            arrays[name] = from_nested(inputs[name], spec, bounds)
        except ValueError as error:
            raise invalid(f"input {_quoted(name)}: {error}") from None
    if signature.has_rows:
        if any(array.ndim == 0 for array in arrays.values()):
            raise invalid("expected a list with a value for each row, got a single value")
        counts = {len(array) for array in arrays.values()}
        if len(counts) > 1:
            raise invalid("expected equally many rows of every input, got " + _listed(counts))
        if counts == {0}:
            raise invalid("expected one or more rows, got none")
    return arrays


def _to_json(name: str, array: np.ndarray) -> Any:
    return to_nested(array, is_binary=name.endswith(BYTES_SUFFIX))


def _to_body(answer: dict[str, Any]) -> bytes:
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")  # a message may quote lone surrogates


def _quoted(name: str) -> str:
    return json.dumps(name if len(name) <= 80 else name[:80] + "...")


def _listed(counts: set[int]) -> str:
    return " and ".join(map(str, sorted(counts)))

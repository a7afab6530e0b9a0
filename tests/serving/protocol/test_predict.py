import base64
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq_memattn.serving.errors import RequestError
from seq2seq_memattn.serving.models.signatures import Signature, TensorSpec
from seq2seq_memattn.serving.protocol.json_tensors import InputBounds
from seq2seq_memattn.serving.protocol.predict import format_predict, parse_predict

BOUNDS = InputBounds(max_rows=5, max_text_bytes=20)


def spec(dtype: Any, *shape: int | None) -> TensorSpec:
    return TensorSpec(np.dtype(dtype), shape)


# The example of several inputs in TensorFlow Serving's documentation.
SEVERAL = {
    "tag": spec(object, None),
    "signal": spec("i8", None, 5),
    "sensor": spec("f8", None, 2, 2),
}
SIGNATURES = {
    "serving_default": Signature("serving_default", {"text": spec(object, None)}, {}),
    "number": Signature("number", {"x": spec("f4", None)}, {}),
    "pair": Signature("pair", {"x": spec("i4", None, 1, 2)}, {}),
    "several": Signature("several", SEVERAL, {}),
    "scalar": Signature("scalar", {"count": spec("i4")}, {}),
    "flag": Signature("flag", {"is_on": spec("?", None)}, {}),
    "byte": Signature("byte", {"x": spec("u1", None)}, {}),
    "any": Signature("any", {"x": TensorSpec(np.dtype("f4"), None)}, {}),
    "none": Signature("none", {}, {}),
}


def parse(body: Any, signature: str = "serving_default") -> dict[str, Any]:
    if isinstance(body, dict):
        body = json.dumps({"signature_name": signature, **body}).encode()
    request = parse_predict(body, SIGNATURES, BOUNDS)
    return {name: array.tolist() for name, array in request.inputs.items()}


def refused(body: Any, signature: str = "serving_default") -> str:
    with pytest.raises(RequestError) as raised:
        parse(body, signature)
    assert 400 <= raised.value.status < 500
    return raised.value.message


def test_the_documented_rows_of_one_input() -> None:
    assert parse({"instances": ["foo", "bar", "baz"]}) == {"text": [b"foo", b"bar", b"baz"]}
    assert parse({"instances": [[[1, 2]], [[3, 4]]]}, "pair") == {"x": [[[1, 2]], [[3, 4]]]}
    assert parse({"instances": [1.0, 2, 5e0]}, "number") == {"x": [1.0, 2.0, 5.0]}


def test_the_documented_rows_and_columns_of_several_inputs_are_the_same() -> None:
    rows = [
        {"tag": "foo", "signal": [1, 2, 3, 4, 5], "sensor": [[1, 2], [3, 4]]},
        {"tag": "bar", "signal": [3, 4, 1, 2, 5], "sensor": [[4, 5], [6, 8]]},
    ]
    columns = {
        "tag": ["foo", "bar"],
        "signal": [[1, 2, 3, 4, 5], [3, 4, 1, 2, 5]],
        "sensor": [[[1, 2], [3, 4]], [[4, 5], [6, 8]]],
    }
    by_rows = parse({"instances": rows}, "several")
    assert by_rows == parse({"inputs": columns}, "several")
    assert by_rows["tag"] == [b"foo", b"bar"]
    assert by_rows["sensor"] == [[[1.0, 2.0], [3.0, 4.0]], [[4.0, 5.0], [6.0, 8.0]]]


def test_a_single_input_needs_no_name_in_columns_and_may_have_one_in_rows() -> None:
    expected = {"text": [b"a", b"b"]}
    assert parse({"inputs": ["a", "b"]}) == expected
    assert parse({"inputs": {"text": ["a", "b"]}}) == expected
    assert parse({"instances": [{"text": "a"}, {"text": "b"}]}) == expected
    assert parse({"inputs": 3}, "scalar") == {"count": 3}
    assert parse({"inputs": {}}, "none") == {}


def test_binary_values_come_as_base64() -> None:
    value = {"b64": base64.b64encode(b"\xff\x00").decode()}
    assert parse({"instances": [value, "a"]}) == {"text": [b"\xff\x00", b"a"]}
    assert parse({"instances": [{"text": value}]}) == {"text": [b"\xff\x00"]}
    assert parse({"inputs": [{"b64": "YQ"}]}) == {"text": [b"a"]}  # base64 without padding


def test_special_numbers_are_read_as_documented() -> None:
    body = b'{"signature_name": "number", "instances": [NaN, Infinity, -Infinity]}'
    nan, high, low = parse(body)["x"]
    assert np.isnan(nan) and high == np.inf and low == -np.inf


@pytest.mark.parametrize(
    ("body", "signature", "says"),
    [
        (b"", "", "not JSON"),
        (b"\xff{}", "", "not UTF-8: byte 0"),
        (b"[]", "", "JSON object"),
        (b"[" * 100_000, "", "nested too deeply"),
        (b'{"instances": ' + b"[" * 50 + b"]" * 50 + b"}", "", "nested at most"),
        (b'{"instances": [' + b"1" * 5000 + b"]}", "", "not JSON"),
        (b'{"instances": ["a"], "instances": ["b"]}', "", 'key "instances" comes twice'),
        (b'{"instances": ["\\ud800"]}', "", "lone surrogate at character 0"),
        (b'{"signature_name": 3, "instances": ["a"]}', "", '"signature_name", got a number'),
        (b'{"signature_name": [], "instances": ["a"]}', "", '"signature_name", got an empty list'),
        ({"instances": ["a"]}, "other", 'no signature "other"; it has any, byte'),
        ({"instances": ["a"]}, "\ud800", "no signature"),
        ({}, "serving_default", "both or neither"),
        ({"instances": ["a"], "inputs": ["a"]}, "serving_default", "both or neither"),
        ({"instances": "a"}, "serving_default", "got a string"),
        ({"instances": []}, "serving_default", "got an empty list"),
        ({"inputs": []}, "serving_default", "one or more rows"),
        ({"inputs": "a"}, "serving_default", "the shape [any], got []"),
        ({"inputs": None}, "serving_default", "the shape [any], got []"),
        ({"instances": [None]}, "serving_default", "got null"),
        ({"instances": [3]}, "serving_default", "expected strings"),
        ({"instances": [{"b64": "%"}]}, "serving_default", "expected base64"),
        ({"instances": [{"b64": 3}]}, "serving_default", "got an object"),
        ({"instances": ["a", {"text": "b"}]}, "serving_default", "to be objects"),
        ({"instances": [{"text": "b"}, "a"]}, "serving_default", "instance 1 differs"),
        ({"instances": [{"text": "b"}, {}]}, "serving_default", "instance 1 differs"),
        ({"instances": [{"txt": "b"}]}, "serving_default", '"text" is missing'),
        ({"instances": [{"text": "b", "x": 1}]}, "serving_default", 'no input "x"'),
        ({"instances": ["a"] * 6}, "serving_default", "at most 5 rows are allowed, got 6"),
        ({"instances": ["a" * 21]}, "serving_default", "at most 20 bytes; one has 21"),
        ({"instances": ["foo"]}, "several", "must be given by name: sensor, signal, tag"),
        ({"inputs": {"x": [[[1, 2]], [[3]]]}}, "pair", "lists of one shape"),
        ({"inputs": {"x": [[[1, 2]], 3]}}, "pair", "lists of one shape"),
        ({"inputs": {"x": [[[1, [2]]]]}}, "pair", "got a list"),
        ({"inputs": {"x": [[[1, 2, 3]]]}}, "pair", "[any, 1, 2], got [1, 1, 3]"),
        ({"instances": [True]}, "number", "got a truth value"),
        ({"instances": ["1"]}, "number", "got a string"),
        ({"instances": [1e39]}, "number", "too large for float32"),
        ({"instances": [10**400]}, "number", "too large for float32"),
        ({"instances": [1.5]}, "byte", "expected whole numbers"),
        ({"instances": [-1]}, "byte", "out of the range of uint8"),
        ({"instances": [1]}, "flag", "true or false"),
    ],
)
def test_what_does_not_fit_is_refused(body: Any, signature: str, says: str) -> None:
    assert says in refused(body, signature)


def test_inputs_of_several_lengths_are_refused() -> None:
    inputs = {"tag": ["a"], "signal": [[1] * 5] * 2, "sensor": [[[1, 2], [3, 4]]]}
    assert "equally many rows of every input, got 1 and 2" in refused({"inputs": inputs}, "several")


def formatted(by_rows: bool, **outputs: Any) -> Any:
    arrays = {name: np.array(value) for name, value in outputs.items()}
    return json.loads(format_predict(arrays, by_rows))


def test_a_single_output_has_no_name() -> None:
    assert formatted(True, y=[2.5, 3.0, 4.5]) == {"predictions": [2.5, 3.0, 4.5]}
    assert formatted(False, y=[2.5, 3.0, 4.5]) == {"outputs": [2.5, 3.0, 4.5]}


def test_several_outputs_have_names() -> None:
    rows = formatted(True, a=[1, 2], b=[[True], [False]])
    assert rows == {"predictions": [{"a": 1, "b": [True]}, {"a": 2, "b": [False]}]}
    assert formatted(False, a=[1, 2], b=[3]) == {"outputs": {"a": [1, 2], "b": [3]}}


def test_outputs_without_a_common_first_axis_are_refused_by_rows() -> None:
    for outputs in ({"a": [1, 2], "b": [3]}, {"a": 1, "b": 2}, {"a": 1}):
        with pytest.raises(RequestError, match="column format"):
            formatted(True, **outputs)


def test_strings_are_text_unless_their_name_ends_in_bytes() -> None:
    values = np.array([["ä".encode(), b"\xff"]], object)
    answer = json.loads(format_predict({"text": values, "image_bytes": values}, False))["outputs"]
    assert answer["text"] == [["ä", "\ufffd"]]
    assert answer["image_bytes"] == [[{"b64": "w6Q="}, {"b64": "/w=="}]]


def test_float32_is_written_with_the_digits_that_it_has() -> None:
    values = np.array([0.2, 1 / 3, 1e-7, 3, 1e30, -0.0], np.float32)
    body = format_predict({"y": values}, True).decode()
    assert body == '{"predictions":[0.2,0.33333334,1e-07,3.0,1e+30,-0.0]}'
    again = np.array(json.loads(body)["predictions"], np.float32)
    np.testing.assert_array_equal(again, values)
    special = format_predict({"y": np.array([np.nan, np.inf, -np.inf], np.float32)}, True)
    assert special == b'{"predictions":[NaN,Infinity,-Infinity]}'


def test_empty_axes_stay() -> None:
    assert formatted(False, y=np.zeros([2, 0], np.float32)) == {"outputs": [[], []]}
    assert formatted(False, y=np.zeros([2, 0, 3], np.int64)) == {"outputs": [[], []]}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(st.sampled_from(["text", "b64", "x", "tag", ""]), children, max_size=3)
    ),
    max_leaves=12,
)
BODIES = st.binary(max_size=60) | st.fixed_dictionaries(
    {},
    optional={
        "signature_name": st.sampled_from(list(SIGNATURES)) | JSON_VALUES,
        "instances": JSON_VALUES | st.lists(st.text(st.characters(), max_size=30), max_size=6),
        "inputs": JSON_VALUES,
        "other": JSON_VALUES,
    },
).map(lambda body: json.dumps(body).encode("utf-8", "surrogatepass"))


def check_any_body(body: bytes) -> None:
    try:
        request = parse_predict(body, SIGNATURES, BOUNDS)
    except RequestError as error:
        assert error.status in (400, 404) and error.message
        return
    assert request.inputs.keys() == request.signature.inputs.keys()
    for name, array in request.inputs.items():
        assert array.dtype == request.signature.inputs[name].dtype
    assert 1 <= request.num_rows <= BOUNDS.max_rows


@settings(max_examples=300, deadline=None, database=None, derandomize=True)
@given(BODIES)
def test_any_body_is_read_or_refused(body: bytes) -> None:
    check_any_body(body)


@pytest.mark.slow
@settings(max_examples=2000, deadline=None, database=None, derandomize=True)
@given(BODIES)
def test_many_bodies_are_read_or_refused(body: bytes) -> None:
    check_any_body(body)

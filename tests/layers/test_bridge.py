from typing import Any

import numpy as np
import pytest

from seq2seq_memattn.layers.bridge import Bridge
from tests.errors import refused
from tests.inputs import MODES, normal, randomise, run, tensor
from tests.tolerances import as_array, assert_close

BATCH, UNITS = 2, 3
# Two layers, two directions, (h, c) each.
STATES = [
    [
        [normal(BATCH, UNITS, seed=8 * layer + 2 * way + part) for part in range(2)]
        for way in range(2)
    ]
    for layer in range(2)
]

modes = pytest.mark.parametrize("mode", MODES)
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


def tensors(states: Any, dtype: str = "float32") -> Any:
    return [[[tensor(part, dtype) for part in way] for way in layer] for layer in states]


@modes
@dtypes
def test_zero_starts_from_zeros(mode: str, dtype: str) -> None:
    bridge = Bridge("zero", [[5, 7], [4]], dtype=dtype)
    states = run(mode, bridge, tensors(STATES, dtype))
    assert [[tuple(s.shape) for s in layer] for layer in states] == [[(2, 5), (2, 7)], [(2, 4)]]
    assert all(s.dtype == dtype for layer in states for s in layer)
    assert not any(as_array(s).any() for layer in states for s in layer)
    assert bridge.weights == []


@modes
def test_copy_hands_on_the_directions_of_a_layer_side_by_side(mode: str) -> None:
    bridge = Bridge("copy", [[2 * UNITS, 2 * UNITS]] * 2)
    states = run(mode, bridge, tensors(STATES))
    expected = [
        [np.concatenate([forward[part], backward[part]], axis=-1) for part in range(2)]
        for forward, backward in STATES
    ]
    assert_close(states, expected)


def test_copy_of_one_direction_hands_on_its_states_as_they_are() -> None:
    forward = [[layer[0]] for layer in STATES]
    states = Bridge("copy", [[UNITS, UNITS]] * 2)(tensors(forward))
    assert_close(states, [layer[0] for layer in STATES])


@pytest.mark.parametrize(
    "state_units",
    [[[UNITS, UNITS]] * 2, [[2 * UNITS, 2 * UNITS]], [[2 * UNITS]] * 2],
)
def test_copy_names_the_widths_of_both_sides(state_units: list[list[int]]) -> None:
    bridge = Bridge("copy", state_units)
    with pytest.raises(ValueError, match="states of the same widths; the encoder's have") as caught:
        bridge(tensors(STATES))
    assert "[[6, 6], [6, 6]]" in str(caught.value)
    assert str(state_units) in str(caught.value)


@modes
@dtypes
@pytest.mark.parametrize("states", ["all", "top", "backward"])
@pytest.mark.parametrize("activation", ["linear", "tanh"])
def test_dense_maps_the_named_states_to_every_state_of_the_decoder(
    mode: str, dtype: str, states: Any, activation: Any
) -> None:
    bridge = Bridge("dense", [[5, 7], [4]], states, activation, dtype=dtype)
    bridge(tensors(STATES, dtype))
    randomise(bridge)
    chosen = {
        "all": [part for layer in STATES for way in layer for part in way],
        "top": [part for way in STATES[1] for part in way],
        "backward": STATES[1][1],
    }[states]
    kernel, bias = [as_array(weight) for weight in bridge.weights]
    mapped = np.concatenate(chosen, axis=-1) @ kernel + bias
    if activation == "tanh":
        mapped = np.tanh(mapped)
    result = run(mode, bridge, tensors(STATES, dtype))
    expected = [[mapped[:, :5], mapped[:, 5:12]], [mapped[:, 12:]]]
    assert_close(result, expected, dtype)


@modes
@pytest.mark.parametrize("states", ["all", "backward"])
def test_a_dense_bridge_of_outputs_leaves_the_other_states_at_zero(mode: str, states: Any) -> None:
    bridge = Bridge("dense", [[5, 7], [4]], states, "tanh", outputs_only=True)
    bridge(tensors(STATES))
    randomise(bridge)
    outputs = [way[0] for layer in STATES for way in layer]
    chosen = outputs if states == "all" else [STATES[1][1][0]]
    kernel, bias = [as_array(weight) for weight in bridge.weights]
    assert kernel.shape == (len(chosen) * UNITS, 5 + 4)
    mapped = np.tanh(np.concatenate(chosen, axis=-1) @ kernel + bias)
    result = run(mode, bridge, tensors(STATES))
    assert_close(result, [[mapped[:, :5], np.zeros([2, 7])], [mapped[:, 5:]]])
    assert Bridge.from_config(bridge.get_config()).outputs_only


def test_one_state_of_one_unit_by_hand() -> None:
    bridge = Bridge("dense", [[1], [1]], dtype="float64")
    states = [[[tensor([[2.0, 3.0]], "float64")]]]
    bridge(states)
    bridge.set_weights([np.array([[1.0, 0.0], [1.0, -1.0]]), np.array([1.0, 1.0])])
    assert_close(bridge(states), [[np.array([[6.0]])], [np.array([[-2.0]])]], "float64")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "random"}, "`kind` must be one of zero, copy, dense; got 'random'"),
        (
            {"kind": "dense", "states": "first"},
            "`states` must be one of all, top, backward.*first",
        ),
        ({"kind": "dense", "activation": "relu"}, "`activation` must be one of linear, tanh; got"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bridge(state_units=[[3]], **arguments)


@pytest.mark.parametrize("kind", ["zero", "copy", "dense"])
def test_states_nested_in_another_way_are_refused(kind: Any) -> None:
    state = np.zeros([2, 3], np.float32)
    for states in (state, [state, state], [[state, state]], [[]]):
        assert refused(Bridge(kind, [[3]]), states) == (
            "`states`: expected a list of encoder layers, each a list of directions, each a list "
            "of the cell's states."
        )


def test_backward_needs_a_backward_direction() -> None:
    forward = tensors([[layer[0]] for layer in STATES])
    with pytest.raises(ValueError, match="needs a bidirectional encoder; .* one direction"):
        Bridge("dense", [[4, 4]], states="backward")(forward)


def test_widths_that_are_not_told_by_cell_are_refused() -> None:
    for given in ([8], 8):
        assert refused(Bridge, "dense", given) == (
            "`state_units`: expected a list of units for each cell, such as [[8]] for a GRU cell; "
            f"got {given}."
        )


def test_options_of_a_dense_bridge_are_refused_by_others() -> None:
    for kind in ("zero", "copy"):
        for options in ({"states": "top"}, {"activation": "tanh"}, {"outputs_only": True}):
            assert refused(Bridge, kind, [[8]], **options) == (
                "`kind`: expected 'dense' with `states`, `activation` or `outputs_only`; got "
                f"{kind!r}."
            )


def test_numbers_of_units_are_checked() -> None:
    assert refused(Bridge, "dense", [["a"]]) == "`state_units` must be an int >= 1; got 'a'."

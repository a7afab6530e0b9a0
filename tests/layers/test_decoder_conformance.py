"""Every attention works in an `AttentionDecoder` with all cells, models and precisions."""

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from seq2seq_memattn.attention.base import Attention
from seq2seq_memattn.attention.registry import ATTENTION_NAMES, K_MEMORY, make_attention
from seq2seq_memattn.config import ModelConfig
from seq2seq_memattn.layers.attention_decoder import AttentionDecoder
from seq2seq_memattn.loops.cell_steps import state_units
from tests.inputs import normal, randomise, tensor
from tests.layers.stepping import OwnCell, step_by_step
from tests.marks import slow
from tests.running import run_python
from tests.tolerances import as_array, assert_close

VOCABULARY, WIDTH, ENCODER_UNITS, UNITS, MIXING_UNITS = 11, 5, 7, 6, 4
SOURCE = np.array([[3, 4, 5, 6, 7], [8, 9, 3, 0, 0]], np.int32)
TARGET = np.array([[1, 5, 0, 0], [1, 10, 6, 4]], np.int32)
BATCH, SOURCE_LENGTH = SOURCE.shape
TARGET_LENGTH = TARGET.shape[1]
# The options of each attention, and of variants with code of their own.
ATTENTIONS: dict[str, dict[str, Any]] = {
    **{name: {"attention": name} for name in ATTENTION_NAMES if name != K_MEMORY},
    "k_memory": {"attention": "k_memory:3"},
    "k_memory with positions": {
        "attention": "k_memory:3",
        "encoder_score": "sigmoid",
        "position_encoding": "mean_one",
        "max_source_length": 9,
    },
    "luong_location": {"attention": "luong_location", "max_source_length": 9},
    "flexible with a window": {"attention": "flexible", "threshold": 0.5},
}
CELLS = ("lstm", "gru", "stacked", "own")
STYLES = ("functional", "subclassed")
POLICIES = ("float32", "mixed_bfloat16")


class Case(NamedTuple):
    attention: str
    cell: str
    style: str
    policy: str

    @property
    def dtype(self) -> str:
        return keras.DTypePolicy(self.policy).compute_dtype


ALL = [Case(*case) for case in itertools.product(ATTENTIONS, CELLS, STYLES, POLICIES)]


def sample() -> list[Case]:
    """Two cases of each attention. All pairs of values occur, except of attention and cell."""
    return [
        Case(attention, CELLS[(i // 2 + 2 * k) % 4], STYLES[k], POLICIES[(i + k) % 2])
        for i, attention in enumerate(ATTENTIONS)
        for k in range(2)
    ]


def named(cases: Iterable[Any], is_slow: bool = False) -> list[Any]:
    marks = [pytest.mark.slow] if is_slow else []
    return [pytest.param(case, id=", ".join(case), marks=marks) for case in cases]


def attention_of(name: str, policy: str) -> Attention:
    options = {"attention_units": 3, "half_window": 1, **ATTENTIONS[name]}
    return make_attention(ModelConfig(decoder_units=UNITS, **options), policy)


def cells_of(name: str, policy: str) -> Any:
    if name == "stacked":
        lower = keras.layers.LSTMCell(UNITS + 2, dtype=policy)
        return [lower, keras.layers.GRUCell(UNITS, dtype=policy)]
    kinds = {"lstm": keras.layers.LSTMCell, "gru": keras.layers.GRUCell, "own": OwnCell}
    return kinds[name](UNITS, dtype=policy)


def encoder_units(attention: str) -> int:
    """Width of the encoder's outputs; a dot product needs the width of the queries."""
    return UNITS if attention == "luong_dot" else ENCODER_UNITS


class Parts:
    """The layers of a model, and the code that connects them."""

    def __init__(self, attention: str, cell: str, policy: str) -> None:
        self.embedding = keras.layers.Embedding(VOCABULARY, WIDTH, mask_zero=True, dtype=policy)
        self.encoder = keras.layers.GRU(
            encoder_units(attention), return_sequences=True, dtype=policy
        )
        self.decoder = AttentionDecoder(
            cells_of(cell, policy),
            attention_of(attention, policy),
            mixing_units=MIXING_UNITS,
            return_alignments=True,
            return_state=True,
            dtype=policy,
        )

    def join(self, source: Any, target: Any) -> list[Any]:
        encoded = self.encoder(self.embedding(source))
        outputs, alignments, states = self.decoder(self.embedding(target), encoded)
        return [outputs, alignments, *states]


@keras.saving.register_keras_serializable(package="tests")
class Subclassed(keras.Model):
    def __init__(self, attention: str, cell: str, policy: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.options = {"attention": attention, "cell": cell, "policy": policy}
        self.parts = Parts(attention, cell, policy)
        # Keras tracks only layers that are attributes of the model.
        self.layers_of_parts = list(vars(self.parts).values())

    def call(self, inputs: Any) -> list[Any]:
        return self.parts.join(*inputs)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.options}


class Made(NamedTuple):
    """A model with random weights, and its parts."""

    case: Case
    model: Any
    parts: Parts

    def __call__(self, source: Any, target: Any) -> list[Any]:
        return self.model([tensor(source, "int32"), tensor(target, "int32")])


def make(case: Case) -> Made:
    if case.style == "subclassed":
        model = Subclassed(case.attention, case.cell, case.policy)
        parts = model.parts
    else:
        parts = Parts(case.attention, case.cell, case.policy)
        inputs = [keras.Input((None,), dtype="int32") for _ in range(2)]
        model = keras.Model(inputs, parts.join(*inputs))
    made = Made(case, model, parts)
    made(SOURCE, TARGET)
    randomise(model, scale=0.3)  # larger weights would amplify rounding from step to step
    return made


FEW = sample()[2::5]  # all styles with all policies
few = pytest.mark.parametrize(  # for the slowest tests
    "made",
    [*named(FEW), *named((case for case in ALL if case not in FEW), is_slow=True)],
    indirect=True,
)
QUICK = [*sample()[::4], *sample()[3::4]]  # one case of each attention, with styles in turns
OTHERS = [case for case in ALL if case not in QUICK]


@pytest.fixture(scope="module", params=[*named(QUICK), *named(OTHERS, is_slow=True)])
def made(request: pytest.FixtureRequest) -> Made:
    return make(request.param)


# The sample


def test_every_attention_is_here() -> None:
    kinds = {options["attention"] for options in ATTENTIONS.values()}
    assert {K_MEMORY if kind.startswith("k_memory:") else kind for kind in kinds} == set(
        ATTENTION_NAMES
    )


def test_the_sample_holds_every_pair_of_values() -> None:
    def pairs(cases: list[Case], *places: int) -> set[Any]:
        return {tuple(case[place] for place in places) for case in cases}

    for places in itertools.combinations(range(len(Case._fields)), 2):
        if places != (0, 1):
            assert pairs(sample(), *places) == pairs(ALL, *places)


# The cases


def test_lengths_of_none_survive_in_shapes(made: Made) -> None:
    if made.case.style == "functional":
        declared = made.model.outputs
    else:
        ids = keras.KerasTensor((None, None), "int32")
        declared = made.model.compute_output_spec([ids, ids])
    states = [units for cell in made.parts.decoder.cell.cells for units in state_units(cell)]
    assert [array.shape for array in declared] == [
        (None, None, MIXING_UNITS),
        (None, None, None),
        *((None, units) for units in states),
    ]
    sizes = [(TARGET_LENGTH, MIXING_UNITS), (TARGET_LENGTH, SOURCE_LENGTH)]
    found = made(SOURCE, TARGET)
    assert [tuple(array.shape[1:]) for array in found] == [*sizes, *((units,) for units in states)]
    for array, spec in zip(found, declared, strict=True):
        assert keras.backend.standardize_dtype(array.dtype) == spec.dtype == made.case.dtype


@few
def test_padding_changes_nothing(made: Made) -> None:
    found, compute = made(SOURCE, TARGET), made.__call__
    if made.case.style == "subclassed":  # a functional model is already traced for all lengths
        spec = tf.TensorSpec([None, None], tf.int32)
        compute = tf.function(compute, [spec, spec], autograph=False)
    padded = compute(np.pad(SOURCE, [(0, 0), (0, 2)]), np.pad(TARGET, [(0, 0), (0, 3)]))
    outputs, alignments, *states = map(as_array, padded)
    expected = list(map(as_array, found))
    cut = [outputs[:, :TARGET_LENGTH], alignments[:, :TARGET_LENGTH, :SOURCE_LENGTH], *states]
    assert_close(cut, expected, made.case.dtype)
    is_padding = (np.pad(TARGET, [(0, 0), (0, 3)]) == 0)[:, :, None]
    beyond = (np.pad(SOURCE, [(0, 0), (0, 2)]) == 0)[:, None, :]
    assert not (outputs * is_padding).any()
    assert not (alignments * np.logical_or(is_padding, beyond)).any()
    for row in range(BATCH):
        source, target = (ids[row][ids[row] != 0][None] for ids in (SOURCE, TARGET))
        alone = list(map(as_array, compute(source, target)))
        steps, positions = target.shape[1], source.shape[1]
        cut = [expected[0][row, :steps], expected[1][row, :steps, :positions]]
        assert_close([array[0] for array in alone[:2]], cut, made.case.dtype)
        assert_close(
            [array[0] for array in alone[2:]],
            [array[row] for array in expected[2:]],
            made.case.dtype,
        )


def test_a_config_rebuilds_the_decoder(made: Made) -> None:
    config = json.dumps(made.parts.decoder.get_config())
    again = AttentionDecoder.from_config(json.loads(config))
    assert json.dumps(again.get_config()) == config


@few
def test_a_saved_model_comes_back(made: Made, tmp_path: Path) -> None:
    made.model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert type(again) is type(made.model)
    expected = list(map(as_array, made(SOURCE, TARGET)))
    found = list(map(as_array, Made(made.case, again, made.parts)(SOURCE, TARGET)))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)
    assert max(np.abs(array).max() for array in expected) > 0.01


# Single steps

# Pairs of attention and cell that do not occur in the sample of models.
PAIRS = [
    (attention, CELLS[(i // 2 + 2 * k + 1) % 4], POLICIES[k])
    for i, attention in enumerate(ATTENTIONS)
    for k in range(2)
]
OTHER_PAIRS = [each for each in itertools.product(ATTENTIONS, CELLS, POLICIES) if each not in PAIRS]


def test_every_attention_meets_every_cell() -> None:
    met = {case[:2] for case in [*sample(), *PAIRS]}
    assert met == set(itertools.product(ATTENTIONS, CELLS))


@pytest.mark.parametrize("case", [*named(PAIRS), *named(OTHER_PAIRS, is_slow=True)])
def test_the_decoder_equals_its_cell_stepped(case: Any) -> None:
    attention, cell, policy = case
    decoder = Parts(attention, cell, policy).decoder
    inputs = tensor(normal(BATCH, TARGET_LENGTH, WIDTH))
    outputs = tensor(normal(BATCH, SOURCE_LENGTH, encoder_units(attention)))
    real, mask = TARGET != 0, tensor(SOURCE != 0, "bool")

    def decode(training: bool) -> Any:
        return decoder(
            inputs, outputs, inputs_mask=real, encoder_outputs_mask=mask, training=training
        )

    decode(False)
    randomise(decoder, scale=0.3)
    for training in (False, True):
        expected = step_by_step(decoder.cell, inputs, real, outputs, mask, training)
        assert_close(list(decode(training)), expected, keras.DTypePolicy(policy).compute_dtype)


# Gradients

STEP = 1e-6  # step of central differences; their error is about 1e-9
QUICK_GRADIENTS = [("bahdanau", "gru"), ("k_memory", "own")]
OTHER_GRADIENTS = [
    each for each in itertools.product(ATTENTIONS, CELLS) if each not in QUICK_GRADIENTS
]


@pytest.mark.parametrize(("attention", "cell"), [*QUICK_GRADIENTS, *slow(*OTHER_GRADIENTS)])
def test_gradients_are_the_limits_of_differences(attention: str, cell: str) -> None:
    """For each weight, the inputs, the encoder's outputs and the first states, one at a time."""
    decoder = Parts(attention, cell, "float64").decoder
    inputs = normal(BATCH, TARGET_LENGTH, WIDTH)
    outputs = normal(BATCH, SOURCE_LENGTH, encoder_units(attention))
    states = [state_units(each) for each in decoder.cell.cells]
    # The first state of `OwnCell` is one of its weights.
    first = [] if cell == "own" else [normal(BATCH, units) for units in sum(states, [])]
    given = {"inputs_mask": TARGET != 0, "encoder_outputs_mask": tensor(SOURCE != 0, "bool")}

    def decode(inputs: Any, outputs: Any, *first: Any) -> Any:
        return decoder(inputs, outputs, list(first) or None, training=True, **given)

    arrays = [tensor(array, "float64") for array in (inputs, outputs, *first)]
    shares = [normal(*array.shape) for array in keras.tree.flatten(decode(*arrays))]
    randomise(decoder, scale=0.3)
    variables = decoder.trainable_variables

    @tf.function(autograph=False)
    def loss(*values: Any) -> Any:
        weights, arrays = values[: len(variables)], values[len(variables) :]
        with keras.StatelessScope(state_mapping=list(zip(variables, weights, strict=True))):
            found = keras.tree.flatten(decode(*arrays))
        return sum(ops.sum(share * x) for share, x in zip(shares, found, strict=True))

    at = [*(tf.convert_to_tensor(variable.value) for variable in variables), *arrays]
    with tf.GradientTape() as tape:
        tape.watch(at)
        value = loss(*at)
    gradients = tape.gradient(value, at, unconnected_gradients="zero")
    sizes = []
    for index, gradient in enumerate(gradients):
        direction = normal(*at[index].shape, seed=index)
        ahead, behind = (
            float(loss(*at[:index], at[index] + sign * STEP * direction, *at[index + 1 :]))
            for sign in (1, -1)
        )
        along = float(np.sum(as_array(tf.convert_to_tensor(gradient)) * direction))
        assert along == pytest.approx((ahead - behind) / (2 * STEP), rel=1e-6, abs=1e-7)
        sizes.append(abs(along))
    assert np.median(sizes) > 1e-3


# JAX

ON_JAX = """
import sys

sys.modules["tensorflow"] = None  # importing it fails from here on
import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

import seq2seq_memattn
from tests.layers.stepping import OwnCell

folder, *names = sys.argv[1:]
stored = np.load(f"{folder}/ids.npz")
for name in names:
    model = keras.saving.load_model(f"{folder}/{name}.keras")
    found = keras.tree.flatten(model.predict([stored["source"], stored["target"]], verbose=0))
    np.savez(f"{folder}/{name}.npz", *found)
"""


def store(attention: str, cell: str, folder: Path) -> Any:
    """Saves a functional model; returns its predictions."""
    parts = Parts(attention, cell, "float32")
    inputs = [keras.Input((None,), dtype="int32") for _ in range(2)]
    model = keras.Model(inputs, parts.join(*inputs))
    randomise(model, scale=0.3)
    model.save(folder / f"{attention}.keras")
    return keras.tree.flatten(model.predict([SOURCE, TARGET], verbose=0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "attentions",
    [
        pytest.param(["k_memory", "flexible"], id="two"),
        pytest.param(list(ATTENTIONS), id="all", marks=pytest.mark.slow),
    ],
)
def test_a_stored_model_gives_the_same_on_jax(attentions: list[str], tmp_path: Path) -> None:
    expected = {name: store(name, CELLS[i % 4], tmp_path) for i, name in enumerate(attentions)}
    np.savez(tmp_path / "ids.npz", source=SOURCE, target=TARGET)
    done = run_python("-c", ON_JAX, str(tmp_path), *attentions)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    for name, arrays in expected.items():
        with np.load(tmp_path / f"{name}.npz") as found:
            assert_close(list(found.values()), arrays)

from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

from seq2seq_memattn.compute.int8 import Int8Matrix
from seq2seq_memattn.search.prepare import prepare
from seq2seq_memattn.search.prepared import PreparedModel, make_weights
from seq2seq_memattn.vocabulary import START_ID
from tests.inputs import MODES, run
from tests.marks import slow
from tests.search.models import (
    ATTENTIONS,
    PrefixModel,
    padded,
    quantise,
    random_tables,
    small_model,
    sources_of,
    with_rounded_products,
)
from tests.tolerances import as_array, assert_close

QUERIES, STEPS = 2, 5
SOURCES = sources_of(6, 0, 3)
TOKENS = np.random.default_rng(4).integers(3, 6, size=[len(SOURCES), QUERIES, STEPS])
INPUTS = np.concatenate(
    [np.full([len(SOURCES), QUERIES, 1], START_ID), TOKENS[:, :, :-1]], axis=2
).astype(np.int32)

# The attentions, and every other variant of a step.
OPTIONS: dict[str, dict[str, Any]] = {
    **{name: {"attention": name} for name in ATTENTIONS},
    "read before": {"attention": "bahdanau", "read": "before"},
    "no input feeding": {"attention": "bahdanau", "input_feeding": False},
    "gru": {"decoder_cell": "gru", "decoder_layers": 1},
    "no mixing": {"mixing": "none", "decoder_layers": 3},
    "linear mixing of the output": {"mixing": "linear", "mixing_from": "output"},
    "tied": {"tied_embeddings": "target", "mixing_units": 5},
    "one vocabulary": {"tied_embeddings": "all", "embedding_dim": 7, "vocab_size": 8},
    "dense bridge": {"bridge": "dense", "bridge_activation": "tanh"},
}

QUICK = (
    "bahdanau",
    "k_memory",
    "flexible_window",
    "read before",
    "no input feeding",
    "gru",
    "tied",
)
WAYS = [
    *((name, True) for name in QUICK),
    *(("k_memory", False), ("flexible_window", False)),
    *slow(*((name, True) for name in OPTIONS if name not in QUICK)),
    *slow(*((name, False) for name in OPTIONS if name not in ("k_memory", "flexible_window"))),
]


def step_through(model: Any, source: Any, inputs: Any, folded: bool = True) -> list[Any]:
    """The logits and scores of every step, and the last state."""
    decoding = PreparedModel(model, folded)
    memory, state = decoding.start(source, QUERIES)
    steps = []
    for step in range(STEPS):
        logits, scores, state = decoding.step(inputs[:, :, step], memory, state)
        steps.append([logits, scores])
    return [steps, state]


def assert_same_numbers(ours: Any, theirs: Any) -> None:
    """Like `assert_close`, but also for integers and booleans."""
    assert_close(as_array(ours).astype(float), as_array(theirs).astype(float))


@pytest.mark.parametrize(("name", "folded"), WAYS)
def test_steps_equal_those_of_the_cell_and_teacher_forcing(name: str, folded: bool) -> None:
    model, source = small_model(**OPTIONS[name]), padded(SOURCES)
    steps, last = step_through(model, source, INPUTS, folded)

    memory, cell_states = model.encode(source)
    state = model.cell.initial_state(memory, QUERIES, cell_states)
    for step, (logits, scores) in enumerate(steps):
        embedded = model.target_embedding(INPUTS[:, :, step])
        outputs, expected_scores, state = model.cell(embedded, memory, state)
        assert_close(logits, as_array(model.to_logits(outputs)))
        keras.tree.map_structure(assert_same_numbers, scores, expected_scores)
    if folded:  # the last context is mapped, so it differs
        last, state = last._replace(context=()), state._replace(context=())
    keras.tree.map_structure(lambda ours, theirs: assert_close(ours, as_array(theirs)), last, state)

    for query in range(QUERIES):
        expected = model({"source": source, "target_inputs": INPUTS[:, query]})
        stepped = np.stack([as_array(logits)[:, query] for logits, _ in steps], axis=1)
        assert_close(stepped, as_array(expected))


@pytest.mark.parametrize("name", ["k_memory", "one vocabulary"])
def test_steps_of_a_quantised_model_equal_teacher_forcing(name: str) -> None:
    model, source = small_model(**OPTIONS[name]), padded(SOURCES)
    quantise(model)
    steps, _ = step_through(model, source, INPUTS)
    stepped = np.stack([as_array(logits)[:, 0] for logits, _ in steps], axis=1)
    expected = as_array(model({"source": source, "target_inputs": INPUTS[:, 0]}))
    # Where a sum is rounded in another order, an 8-bit number may differ in its last place.
    np.testing.assert_allclose(stepped, expected, atol=0.03 * np.abs(expected).max())


@pytest.mark.parametrize("mode", MODES)
def test_every_way_of_running_gives_logits_of_float32(mode: str) -> None:
    model = small_model()
    expected, _ = step_through(model, padded(SOURCES), INPUTS)
    steps, _ = run(mode, lambda source: step_through(model, source, INPUTS), padded(SOURCES))
    for (logits, _), (first, _) in zip(steps, expected, strict=True):
        assert keras.backend.standardize_dtype(logits.dtype) == "float32"
        assert logits.shape == (len(SOURCES), QUERIES, 6)
        assert_close(logits, as_array(first))


@pytest.mark.parametrize(
    ("attention", "precision"),
    [
        ("k_memory", "bfloat16_products"),
        ("k_memory", "int8_products"),
        *slow(("bahdanau", "bfloat16_products"), ("flexible_window", "bfloat16_products")),
    ],
)
def test_logits_of_rounded_operands_are_the_same_with_and_without_xla(
    attention: str, precision: str
) -> None:
    # A small model: an operand midway between two rounded numbers may be rounded to either.
    one_layer = {"encoder_layers": 1, "bidirectional": False, "decoder_layers": 1}
    model = with_rounded_products(small_model(attention, **one_layer), precision)
    model.logits.bias.assign(ops.zeros_like(model.logits.bias))

    def first_logits(source: Any) -> Any:
        decoding = PreparedModel(model)
        logits, _, _ = decoding.step(INPUTS[:1, :, 0], *decoding.start(source, QUERIES))
        return logits

    plain, compiled = (run(mode, first_logits, padded(sources_of(2))) for mode in ("eager", "xla"))
    assert_close(plain, compiled)
    assert (as_array(ops.cast(plain, "bfloat16")) != as_array(plain)).any()


@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("name", ["k_memory", "gru", *slow("bahdanau", "tied", "no mixing")])
def test_steps_of_eight_bits_are_close_to_those_of_float32(
    name: str, folded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, source = small_model(**OPTIONS[name]), padded(SOURCES)
    expected, _ = step_through(model, source, INPUTS, folded)
    rounding = with_rounded_products(model, "int8_products")
    monkeypatch.setattr(rounding, "to_logits", None)  # computes in float32
    steps, _ = step_through(rounding, source, INPUTS, folded)
    found, expected = (
        np.stack([as_array(logits) for logits, _ in each]) for each in (steps, expected)
    )
    assert 0 < np.abs(found - expected).max() < 0.03 * np.abs(expected).max()


@pytest.mark.parametrize("folded", [True, False])
def test_the_mixing_layer_is_rounded_to_eight_bits(folded: bool) -> None:
    weights = make_weights(with_rounded_products(small_model(), "int8_products"), folded)
    assert isinstance(weights.folds.output if folded else weights.mixing, Int8Matrix)


@pytest.mark.parametrize("name", ["k_memory", "gru"])
def test_the_encoder_of_eight_bits_is_close_to_that_of_float32(name: str) -> None:
    model, source = small_model(**OPTIONS[name]), padded(SOURCES)
    rounding = with_rounded_products(model, "int8_products")
    expected, found = (as_array(each.encode(source)[0].rows) for each in (model, rounding))
    assert 0 < np.abs(found - expected).max() < 0.03 * np.abs(expected).max()


def test_alignment_and_positions_are_those_of_the_attention() -> None:
    model, source = small_model("bahdanau"), padded(SOURCES)
    decoding = PreparedModel(model)
    memory, state = decoding.start(source, QUERIES)
    _, scores, _ = decoding.step(INPUTS[:, :, 0], memory, state)
    assert decoding.alignment(scores, memory) is scores
    np.testing.assert_array_equal(
        as_array(decoding.positions_scored(scores, memory)), [[7, 7], [1, 1], [4, 4]]
    )


def test_weights_are_read_when_it_is_made() -> None:
    model, source = small_model(), padded(SOURCES)
    made = PreparedModel(model)
    memory, state = made.start(source, QUERIES)
    before = as_array(made.step(INPUTS[:, :, 0], memory, state)[0])
    table = model.target_embedding.embeddings
    table.assign(ops.zeros_like(table))
    assert_close(made.step(INPUTS[:, :, 0], memory, state)[0], before)
    for variable in model.trainable_variables:
        variable.assign(ops.zeros_like(variable))
    after = as_array(step_through(model, source, INPUTS)[0][0][0])
    assert not np.allclose(before, after)
    assert not after.any()


def test_only_models_need_to_be_made_ready() -> None:
    other = PrefixModel(random_tables(0, [0.0]))
    assert prepare(other, 1) is other
    assert isinstance(prepare(small_model(), 1), PreparedModel)
